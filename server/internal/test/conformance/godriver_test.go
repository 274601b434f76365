//go:build unix

package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
)

// goDriver is the argument that makes this test a driver of the Go client.
const goDriver = "go-driver"

// driveGo is the driver of the Go client.
func driveGo(args []string) {
	var (
		c       client.Config
		flags   = flag.NewFlagSet(goDriver, flag.ExitOnError)
		seconds = func(name string, to *time.Duration) {
			flags.Func(name, "seconds", func(text string) error {
				n, err := strconv.ParseFloat(text, 64)
				*to = time.Duration(n * float64(time.Second))
				return err
			})
		}
		servers, name = flags.String("servers", "", ""), flags.String("sequencer", "", "")
		wide          = flags.Bool("wide", false, "")
	)
	seconds("timeout", &c.Timeout)
	seconds("patience", &c.Patience)
	flags.BoolFunc("patient", "", func(string) error {
		c.Timeout, c.Patience = 10*time.Minute, 10*time.Minute
		return nil
	})
	flags.Func("token-file", "", func(file string) error {
		c.TokenSource = func(context.Context) (string, error) {
			data, err := os.ReadFile(file)
			return string(data), err
		}
		return nil
	})
	flags.Func("ca", "", func(file string) error {
		c.TLS = &tls.Config{InsecureSkipVerify: true, VerifyConnection: verifyWith(file)}
		return nil
	})
	flags.Parse(args)
	c.Servers = strings.Split(*servers, ",")
	one, err := client.New(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *wide {
		drive(one, one.Sequencer128(*name))
	} else {
		drive(one, one.Sequencer(*name))
	}
}

// verifyWith reads the file of authorities for each connection.
func verifyWith(file string) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AppendCertsFromPEM(data)
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Roots: roots, Intermediates: between})
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		return nil
	}
}

func drive[I firn.AnyID](c *client.Client, ids *client.SequencerOf[I]) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		text, err := command(c, ids, words)
		switch said, isServer := err.(*client.Error); {
		case err == nil && text != "":
			fmt.Println("ok", text)
		case err == nil:
			fmt.Println("ok")
		case errors.Is(err, errors.ErrUnsupported):
			fmt.Println("skip")
		case isServer:
			fmt.Println("error ServerError", strings.Join(strings.Fields(said.Error()), " "))
		default:
			class := "Error"
			if strings.Contains(err.Error(), "no server gives IDs") {
				class = "UnavailableError"
			}
			fmt.Println("error", class, strings.Join(strings.Fields(err.Error()), " "))
		}
		if words[0] == "close" {
			return
		}
	}
}

func command[I firn.AnyID](c *client.Client, ids *client.SequencerOf[I], words []string) (string, error) {
	ctx := context.Background()
	n := 0
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	switch words[0] {
	case "next":
		all := make([]I, n)
		err := ids.Fill(ctx, all)
		return texts(all), err
	case "take":
		batch, err := ids.NextBatch(ctx, n)
		all := make([]I, 0, n)
		for id := range batch.All() {
			all = append(all, id)
		}
		return texts(all), err
	case "burst":
		threads, _ := strconv.Atoi(words[2])
		data, longest, err := burst(ctx, ids, n, threads)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%.3f", longest.Seconds()*1000), os.WriteFile(words[3], data, 0o600)
	case "fork":
		return "", errors.ErrUnsupported
	case "stats":
		return fmt.Sprintf("%q", c.ServerErrors()), nil
	case "close":
		return "", c.Close(ctx)
	}
	return "", fmt.Errorf("unknown command %s", words[0])
}

func texts[I firn.AnyID](all []I) string {
	text := fmt.Sprint(all)
	return text[1 : len(text)-1]
}

// burst draws n IDs in each of some goroutines.
func burst[I firn.AnyID](ctx context.Context, ids *client.SequencerOf[I], n, threads int) (data []byte, longest time.Duration, err error) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
	)
	for range threads {
		wait.Go(func() {
			var mine []byte
			var most time.Duration
			for range n {
				start := time.Now()
				id, failed := ids.Next(ctx)
				if failed != nil {
					mu.Lock()
					defer mu.Unlock()
					err = failed
					return
				}
				most = max(most, time.Since(start))
				mine = appendID(mine, id)
			}
			mu.Lock()
			defer mu.Unlock()
			data, longest = append(data, mine...), max(longest, most)
		})
	}
	wait.Wait()
	return data, longest, err
}

func appendID[I firn.AnyID](b []byte, id I) []byte {
	switch id := any(id).(type) {
	case firn.ID:
		return binary.BigEndian.AppendUint64(b, uint64(id))
	case firn.ID128:
		return append(b, id[:]...)
	}
	return b
}
