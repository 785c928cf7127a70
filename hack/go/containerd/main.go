package main

import (
	"context"
	"fmt"
	"os"

	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	"github.com/containerd/containerd/v2/cmd/containerd/command"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// containerd as it is, except that its containers name version 1.0 of the OCI runtime specification, not 1.3.
// Debian 12's crun 1.8 answers "unknown version specified" to any later one. It ignores fields that it does not know.
func main() {
	specs.Version = "1.0.2"
	if err := command.App().Run(context.Background(), os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
