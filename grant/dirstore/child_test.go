package dirstore

import (
	"fmt"
	"os"
	"testing"
)

// childEnv is set in processes that tests start, to their task.
const childEnv = "FIRN_DIRSTORE_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := childMain(role); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
