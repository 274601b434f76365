// Command kube is Kubernetes' API server, kube-apiserver, for the tests of
// package kubestore: k8s.io/kubernetes publishes it as a module, whose own
// command cannot be built from outside, as the replacements in its go.mod apply
// to nobody else.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
