// The program `ansible-runner` of the operator's image, which ansible-operator starts once for each reconcile.
//
// It does what src/dljob_operator/ansible_operator_bridge/shim/dljob_shim.py does, whose documentation has the protocol,
// and starts in a tenth of the time. tests/unit/operator runs the same tests with both.
package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	name           = "ansible-runner"
	socketVariable = "DLJOB_RUNNER_SOCKET"
	// Seconds to wait for the response to the request.
	acceptTimeout = 120
	defaultPath   = "/bin:/usr/bin"
	// With fewer runs to keep every run of ansible-runner 2.4.3 fails after the first: it counts the link `latest`, which
	// ansible-operator sets, as a run, and cannot remove it.
	fewestRuns = "3"
)

var accepted = []byte("accepted\n")

func main() {
	os.Exit(run(os.Args[1:]))
}

// run returns the exit code of the run; it does not return if it executes the real ansible-runner.
func run(arguments []string) int {
	path := os.Getenv(socketVariable)
	if path == "" {
		return executeReal(arguments, socketVariable+" is not set")
	}
	connection, answer, err := request(path, arguments)
	if err != nil {
		return executeReal(arguments, path+": "+err.Error())
	}
	if !bytes.HasPrefix(answer, accepted) {
		syscall.Close(connection)
		_, reason, _ := strings.Cut(string(answer), " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			reason = "no answer"
		}
		return executeReal(arguments, reason)
	}
	return exitCode(connection, answer[len(accepted):], arguments)
}

// request sends the request and returns the connection and at least the first line of the answer.
func request(path string, arguments []string) (int, []byte, error) {
	connection, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	if err := setTimeout(connection, acceptTimeout); err != nil {
		return 0, nil, err
	}
	if err := syscall.Connect(connection, &syscall.SockaddrUnix{Name: path}); err != nil {
		return 0, nil, err
	}
	folder, err := syscall.Getwd() // os.Getwd would trust PWD
	if err != nil {
		return 0, nil, err
	}
	body := strings.Join(append([]string{folder}, arguments...), "\x00")
	if err := writeAll(connection, []byte(strconv.Itoa(len(body))+"\n"+body)); err != nil {
		return 0, nil, err
	}
	var answer []byte
	for !bytes.Contains(answer, []byte("\n")) {
		data, err := receive(connection)
		if err != nil {
			return 0, nil, err
		}
		if len(data) == 0 {
			break
		}
		answer = append(answer, data...)
	}
	return connection, answer, nil
}

func setTimeout(connection int, seconds int64) error {
	timeout := syscall.Timeval{Sec: seconds}
	for _, option := range []int{syscall.SO_SNDTIMEO, syscall.SO_RCVTIMEO} {
		if err := syscall.SetsockoptTimeval(connection, syscall.SOL_SOCKET, option, &timeout); err != nil {
			return err
		}
	}
	return nil
}

// receive returns the next bytes of the stream, none at its end.
func receive(connection int) ([]byte, error) {
	buffer := make([]byte, 4096)
	for {
		count, err := syscall.Read(connection, buffer)
		if err == nil {
			return buffer[:count], nil
		}
		if err == syscall.EAGAIN {
			return nil, errors.New("timed out")
		}
		if err != syscall.EINTR {
			return nil, err
		}
	}
}

func writeAll(file int, data []byte) error {
	for len(data) > 0 {
		count, err := syscall.Write(file, data)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[count:]
	}
	return nil
}

// exitCode prints the output of the accepted run and returns its exit code.
func exitCode(connection int, answer []byte, arguments []string) int {
	err := setTimeout(connection, 0)
	for err == nil {
		var data []byte
		if data, err = receive(connection); len(data) == 0 {
			break
		}
		answer = append(answer, data...)
	}
	code, output, _ := bytes.Cut(answer, []byte("\n"))
	if number, invalid := strconv.ParseUint(string(code), 10, 31); err == nil && invalid == nil {
		writeAll(1, output)
		return int(number)
	}
	text := []byte("the operator process ended during the run; ansible-operator will try again\n")
	writeAll(1, text)
	writeStdout(arguments, text)
	return 1
}

// writeStdout writes artifacts/<ident>/stdout, without which ansible-operator reports in the status that no run started.
// Errors have no effect: ansible-operator tries again in any case.
func writeStdout(arguments []string, text []byte) {
	ident := ""
	for i, argument := range arguments[:max(len(arguments)-1, 0)] {
		if argument == "-i" {
			ident = arguments[i+1]
			break
		}
	}
	if ident == "" || len(arguments) < 2 {
		return
	}
	folder := filepath.Join(arguments[1], "artifacts", ident)
	if os.MkdirAll(folder, 0o700) != nil {
		return
	}
	if file, err := os.OpenFile(filepath.Join(folder, "stdout"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
		file.Write(text)
		file.Close()
	}
}

// withEnoughRuns returns the arguments with at least fewestRuns to keep. 0, for all, stays.
func withEnoughRuns(arguments []string) []string {
	result := append([]string{}, arguments...)
	for i := 1; i < len(result); i++ {
		if result[i-1] == "--rotate-artifacts" && (result[i] == "1" || result[i] == "2") {
			result[i] = fewestRuns
		}
	}
	return result
}

// executeReal executes the next `ansible-runner` on PATH.
func executeReal(arguments []string, reason string) int {
	os.Stderr.WriteString(name + ": a cold run, " + reason + "\n")
	own := ""
	if executable, err := os.Executable(); err == nil {
		own, _ = filepath.EvalSymlinks(filepath.Dir(executable))
	}
	search, isSet := os.LookupEnv("PATH")
	if !isSet {
		search = defaultPath
	}
	for _, folder := range filepath.SplitList(search) {
		candidate := filepath.Join(folder, name)
		real, err := filepath.EvalSymlinks(folder)
		if folder == "" || err != nil || real == own || syscall.Access(candidate, 1) != nil {
			continue
		}
		err = syscall.Exec(candidate, append([]string{candidate}, withEnoughRuns(arguments)...), os.Environ())
		os.Stderr.WriteString(name + ": " + candidate + ": " + err.Error() + "\n")
		return 126
	}
	os.Stderr.WriteString(name + ": there is no other " + name + " on PATH: pip install ansible-runner\n")
	return 127
}
