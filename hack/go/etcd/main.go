// Command etcd is upstream's server, unchanged: its own main package lives in a module that replaces its siblings with
// relative paths and therefore cannot be required from a registry.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
