package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// An interruption is a signal that ended a command's context. It matches
// context.Canceled.
type interruption struct{ syscall.Signal }

func (i *interruption) Error() string { return "signal: " + i.String() }

func (i *interruption) Is(target error) bool { return target == context.Canceled }

// code returns the exit code of a command that the signal interrupted.
func (i *interruption) code() int { return exitSignal + int(i.Signal) }

// untilSignal returns a context that ends at the first of the signals; its
// cause is then an interruption. Later, each signal is sent to next, which may
// be nil.
func untilSignal(parent context.Context, next chan<- os.Signal, signals ...os.Signal,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	arrived := make(chan os.Signal, 16)
	signal.Notify(arrived, signals...)
	stopped := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case s := <-arrived:
				cancel(&interruption{s.(syscall.Signal)}) // as all are that Go has on these systems
				select {
				case next <- s:
				case <-stopped:
				}
			case <-stopped:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(arrived)
		close(stopped)
		ended.Wait()
		cancel(nil)
	}
}
