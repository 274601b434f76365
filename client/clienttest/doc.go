// Package clienttest answers the requests of package client in tests of
// programs that use it. It implements the part of the HTTP API that package
// client uses, and fails on request. It runs inside the test; firn serve is not
// needed.
//
//	h, err := clienttest.NewHandler(nil)
//	...
//	s := httptest.NewServer(h)
//	defer s.Close()
//	c, err := client.New(client.Config{Servers: []string{s.URL}})
//
// It is not for production: it keeps its node ID in no store.
package clienttest
