// The baseline in Go: it watches MXJobs and PyTorchJobs and writes the objects that programs/baseline.py writes for each.
//
// It uses client-go. Pods, Services and ConfigMaps travel as protobuf, which the API server does not offer for custom resources. It reads
// nothing back, repairs nothing and ignores failed replicas.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A job of so many replicas has its cluster in a ConfigMap, as with this operator.
const fromReplicas = 50

// The kinds, each with the first replica of its jobs, which has a Service of its own.
var firsts = map[string]string{"MXJob": "scheduler-0", "PyTorchJob": "master-0"}

func resource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

type replicaSpecs map[string]struct {
	Replicas int                    `json:"replicas"`
	Template corev1.PodTemplateSpec `json:"template"`
}

type job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MX      replicaSpecs `json:"mxReplicaSpecs"`
		PyTorch replicaSpecs `json:"pytorchReplicaSpecs"`
	} `json:"spec"`
}

type address struct {
	URL  string `json:"url"`
	Port int    `json:"port"`
}

// The remaining writes of a job's objects, and the write of its status that comes after them.
type remaining struct {
	atomic.Int64
	status func(context.Context) error
}

// A write; that of a status is not one of a job's remaining ones.
type write struct {
	do   func(context.Context) error
	left *remaining
}

// Writes of objects come before writes of statuses, as in this operator.
type work struct {
	mutex             sync.Mutex
	waiting           *sync.Cond
	objects, statuses []write
}

func newWork() *work {
	made := &work{}
	made.waiting = sync.NewCond(&made.mutex)
	return made
}

func (w *work) put(to *[]write, more ...write) {
	w.mutex.Lock()
	*to = append(*to, more...)
	w.mutex.Unlock()
	w.waiting.Broadcast()
}

func (w *work) get() write {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.objects) == 0 && len(w.statuses) == 0 {
		w.waiting.Wait()
	}
	from := &w.objects
	if len(w.objects) == 0 {
		from = &w.statuses
	}
	next := (*from)[0]
	*from = (*from)[1:]
	return next
}

type clients struct {
	core kubernetes.Interface
	jobs dynamic.Interface
}

// The writes of a job's objects; after the last of them its status is due.
func (c clients) writes(job *job) []write {
	left := &remaining{status: func(ctx context.Context) error {
		status := []byte(`{"status":{"conditions":[{"type":"Running","status":"True","reason":"Made","message":""}]}}`)
		_, err := c.jobs.Resource(resource(job.Kind)).Namespace(job.Namespace).Patch(
			ctx, job.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
		return err
	}}
	var made []write
	add := func(do func(context.Context) error) {
		made = append(made, write{do, left})
	}
	labels := map[string]string{
		"training.kubeflow.org/job-name": job.Name, "app.kubernetes.io/managed-by": "baseline-go",
	}
	yes := true
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: job.APIVersion, Kind: job.Kind, Name: job.Name, UID: job.UID,
			Controller: &yes, BlockOwnerDeletion: &yes,
		}}}
	}
	core := c.core.CoreV1()
	service := func(name string, selector map[string]string) {
		body := &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: selector, PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{Port: 9091}},
		}}
		add(func(ctx context.Context) error {
			_, err := core.Services(job.Namespace).Create(ctx, body, metav1.CreateOptions{})
			return err
		})
	}
	all := job.Name + "-all"
	service(all, labels)
	first := map[string]string{"index": "0"}
	for key, value := range labels {
		first[key] = value
	}
	service(job.Name+"-"+firsts[job.Kind], first)

	specs := job.Spec.MX
	if job.Kind == "PyTorchJob" {
		specs = job.Spec.PyTorch
	}
	members, replicas := map[string][]address{}, 0
	for kind, spec := range specs {
		for index := 0; index < spec.Replicas; index++ {
			name := fmt.Sprintf("%s-%s-%d", job.Name, strings.ToLower(kind), index)
			members[strings.ToLower(kind)] = append(members[strings.ToLower(kind)], address{name, 9091})
		}
		replicas += spec.Replicas
	}
	text, err := json.Marshal(members)
	if err != nil {
		log.Fatal(err)
	}
	cluster := `{"cluster":` + string(text)
	var shared []corev1.EnvVar
	if job.Kind == "MXJob" && replicas >= fromReplicas {
		shared = []corev1.EnvVar{{Name: "SHARED", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: all}, Key: "MX_CONFIG",
			},
		}}}
		body := &corev1.ConfigMap{ObjectMeta: meta(all), Immutable: &yes, Data: map[string]string{"MX_CONFIG": cluster}}
		add(func(ctx context.Context) error {
			_, err := core.ConfigMaps(job.Namespace).Create(ctx, body, metav1.CreateOptions{})
			return err
		})
		cluster = "$(SHARED)"
	}
	for kind, spec := range specs {
		kind := strings.ToLower(kind)
		for index := 0; index < spec.Replicas; index++ {
			name := fmt.Sprintf("%s-%s-%d", job.Name, kind, index)
			var variables []corev1.EnvVar
			if job.Kind == "PyTorchJob" {
				variables = ofTorch(job.Name+"-master-0", kind, index, replicas)
			} else {
				config := fmt.Sprintf(`%s,"labels":{},"task":{"type":"%s","index":%d}}`, cluster, kind, index)
				variables = append(append([]corev1.EnvVar{}, shared...),
					corev1.EnvVar{Name: "DMLC_PS_ROOT_PORT", Value: "9091"},
					corev1.EnvVar{Name: "DMLC_NUM_WORKER", Value: "2"},
					corev1.EnvVar{Name: "DMLC_NUM_SERVER", Value: "1"},
					corev1.EnvVar{Name: "DMLC_USE_KUBERNETES", Value: "1"},
					corev1.EnvVar{Name: "MX_CONFIG", Value: config},
					corev1.EnvVar{Name: "DMLC_ROLE", Value: kind})
			}
			pod := &corev1.Pod{ObjectMeta: meta(name), Spec: *spec.Template.Spec.DeepCopy()}
			pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.RestartPolicy = name, all, corev1.RestartPolicyNever
			for number := range pod.Spec.Containers {
				pod.Spec.Containers[number].Env = variables
			}
			add(func(ctx context.Context) error {
				_, err := core.Pods(job.Namespace).Create(ctx, pod, metav1.CreateOptions{})
				return err
			})
		}
	}
	left.Store(int64(len(made)))
	return made
}

// The variables of a replica of a PyTorchJob, whose master has rank 0.
func ofTorch(master, kind string, index, replicas int) []corev1.EnvVar {
	if kind == "worker" {
		index++
	}
	rank, size := strconv.Itoa(index), strconv.Itoa(replicas)
	return []corev1.EnvVar{
		{Name: "PYTHONUNBUFFERED", Value: "1"}, {Name: "MASTER_ADDR", Value: master},
		{Name: "MASTER_PORT", Value: "23456"}, {Name: "PET_MASTER_ADDR", Value: master},
		{Name: "PET_MASTER_PORT", Value: "23456"}, {Name: "WORLD_SIZE", Value: size}, {Name: "RANK", Value: rank},
		{Name: "PET_NODE_RANK", Value: rank}, {Name: "PET_NPROC_PER_NODE", Value: "auto"},
		{Name: "PET_NNODES", Value: size},
	}
}

func (w *work) run(ctx context.Context) {
	for {
		one := w.get()
		if err := one.do(ctx); err != nil && !apierrors.IsNotFound(err) { // deleted at the end of a workload
			fmt.Println(err)
		}
		if one.left != nil && one.left.Add(-1) == 0 {
			w.put(&w.statuses, write{do: one.left.status})
		}
	}
}

func connect() (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return clients{}, err
	}
	config.QPS = -1 // no limit of the client's own; the API server has one
	jobs, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf
	core, err := kubernetes.NewForConfig(protobuf)
	return clients{core, jobs}, err
}

func main() {
	writers := flag.Int("writers", 8, "writes at a time")
	flag.Parse()
	ctx := context.Background()
	c, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	queue := newWork()
	for number := 0; number < *writers; number++ {
		go queue.run(ctx)
	}
	versions := map[string]string{}
	for kind := range firsts {
		found, err := c.jobs.Resource(resource(kind)).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			log.Fatal(err)
		}
		versions[kind] = found.GetResourceVersion()
	}
	fmt.Println("ready")
	for kind, version := range versions {
		go c.follow(ctx, kind, version, queue)
	}
	select {}
}

// Puts the writes of each new job of a kind into the queue.
func (c clients) follow(ctx context.Context, kind, version string, queue *work) {
	for {
		events, err := c.jobs.Resource(resource(kind)).Watch(
			ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			log.Fatal(err)
		}
		for event := range events.ResultChan() {
			seen, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				log.Fatalf("the watch failed: %v", event.Object)
			}
			version = seen.GetResourceVersion()
			if event.Type == watch.Added {
				made := &job{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(seen.Object, made); err != nil {
					log.Fatal(err)
				}
				queue.put(&queue.objects, c.writes(made)...)
			}
		}
	}
}
