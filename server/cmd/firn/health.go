package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/doctor"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

func newHealth(a *app) *cobra.Command {
	var live bool
	var configFile string
	var timeout time.Duration
	cmd := command("health", wantArgs("the address", 0, 1), func(cmd *cobra.Command, args []string) error {
		var address string
		switch {
		case len(args) == 0:
			s, err := a.serveSettings(configFile, "")
			if err == nil {
				address, err = s.healthAddress()
			}
			if err != nil {
				return err
			}
		case configFile != "":
			return misuse("leave one of them out", "--config has no effect with the address %s", args[0])
		case !strings.HasPrefix(args[0], "unix:") && !members.IsAddress(args[0]):
			return misuse("write HOST:PORT, such as "+defaultListen+", or unix:PATH", "%q is not an address", args[0])
		default:
			address = args[0]
		}
		path := "/readyz"
		if live {
			path = "/healthz"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		return a.askHealth(ctx, address, path)
	})
	cmd.Flags().BoolVar(&live, "live", false, "check only that the server answers (/healthz), ready or not")
	cmd.Flags().StringVar(&configFile, "config", "", "`FILE` of the server's configuration (default $"+configEnv+")")
	cmd.Flags().DurationVar(&timeout, "timeout", 4*time.Second, "how long the server may take")
	return cmd
}

// healthAddress returns the HTTP address for programs on this machine.
func (s *serveCmd) healthAddress() (string, error) {
	endpoints, wrong := s.endpoints()
	if err := wrong.error(s.from); err != nil {
		return "", err
	}
	for _, p := range endpoints {
		switch {
		case p.only != nil && !slices.Contains(p.only, listen.HTTP):
		case p.address == nil:
			return p.text, nil
		case p.address.Port == 0:
			return "", misuse("name the address: firn health HOST:PORT",
				"--%s %s: the server takes a free port, which only its log shows", p.flag, p.text)
		default:
			return p.address.String(), nil
		}
	}
	return "", misuse("", "the server has no HTTP address: see --listen-http")
}

// askHealth requests a path from the server at an address, and prints the
// answer.
func (a *app) askHealth(ctx context.Context, address, path string) error {
	answer, body, err := doctor.Ask(ctx, address, path)
	if err != nil {
		return failed("check that the server is running and listens there; if it requires client certificates, let "+
			"it also listen on a socket: --listen unix:PATH",
			"the server at %s does not answer: %w", address, textfmt.Cause(err))
	}
	if answer.StatusCode == http.StatusOK {
		fmt.Fprintln(a.stdout, textfmt.PrintableLines(strings.TrimSpace(string(body))))
		return nil
	}
	_, title, detail := service.ReadProblem(body)
	if title == "" {
		title, detail = answer.Status, "the answer is not from Firn"
	}
	return refused("", "the server at %s is not ready: %s: %s", address, title, detail)
}
