// Package deploy tests what deploy/ has for Kubernetes, compose and Prometheus,
// with the libraries and tools that read it. It is not for import.
package deploy
