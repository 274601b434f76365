package main

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime is the processor time of this thread so far, so that what other programs
// take of the machine is not counted. The goroutine must be locked to its thread.
func threadTime() time.Duration { return clockTime(3) } // CLOCK_THREAD_CPUTIME_ID

// processTime is the processor time of this process so far.
func processTime() time.Duration { return clockTime(2) } // CLOCK_PROCESS_CPUTIME_ID

func clockTime(clock uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}

// pin keeps this thread on one processor. It reports whether it could.
func pin(cpu int) bool {
	mask := uint64(1) << cpu
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, 8, uintptr(unsafe.Pointer(&mask)))
	return errno == 0
}
