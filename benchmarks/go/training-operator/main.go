// training-operator with its client limits lifted.
//
// Its own main has no flag for them: the client's queries per second and burst are the defaults of
// controller-runtime. This main sets up the same packages for the same kinds in the same way, and
// leaves out what a benchmark does not use (gang scheduling, health probes). Its flags of the leader election are this
// operator's, so that both have the same times; unlike its own main it releases the Lease at its end.
package main

import (
	"flag"
	"os"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllerv1 "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	schedulerpluginsv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func main() {
	metrics := flag.String("metrics-bind-address", "0", "where metrics are served; 0 is nowhere")
	threads := flag.Int("controller-threads", 1, "reconciles at a time")
	elects := flag.Bool("leader-elect", false, "reconcile only while this process holds a Lease")
	namespace := flag.String("leader-election-namespace", "default", "namespace of the Lease")
	duration := flag.Duration("leader-elect-lease-duration", 15*time.Second, "how long after its renewal another may take it")
	deadline := flag.Duration("leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew it")
	period := flag.Duration("leader-elect-retry-period", 2*time.Second, "how often it is renewed, or read by a standby")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&zap.Options{Development: true, StacktraceLevel: zapcore.DPanicLevel})))
	log := ctrl.Log.WithName("setup")

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflowv1.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(schedulerpluginsv1alpha1.AddToScheme(scheme))

	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = config.MPIKubectlDeliveryImageDefault

	connection := ctrl.GetConfigOrDie()
	connection.QPS, connection.Burst = -1, 0 // no limit of the client's own; the API server has one

	manager, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: *metrics},
		LeaderElection:                *elects,
		LeaderElectionID:              "training-operator",
		LeaderElectionNamespace:       *namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 duration,
		RenewDeadline:                 deadline,
		RetryPeriod:                   period,
	})
	if err != nil {
		log.Error(err, "no manager")
		os.Exit(1)
	}
	for kind, setup := range controllerv1.SupportedSchemeReconciler {
		if err := setup(manager, common.GenNonGangSchedulerSetupFunc(), *threads); err != nil {
			log.Error(err, "no controller", "kind", kind)
			os.Exit(1)
		}
	}
	log.Info("starting manager")
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "the manager ended")
		os.Exit(1)
	}
}
