// Package deploy tests the files in deploy/ for Kubernetes, Compose and
// Prometheus with the libraries and tools that read them. It is not for import.
package deploy
