// Command kube is the API server of Kubernetes, kube-apiserver, for the tests
// of package kubestore. k8s.io/kubernetes publishes it as a module, but its own
// command cannot be built from outside, because the replacements in its go.mod
// apply only within it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
