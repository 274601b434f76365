package main

import (
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// threadTime returns the processor time of this thread so far, which excludes
// the time of other programs. The goroutine must be locked to its thread.
func threadTime() time.Duration { return clockTime(3) } // CLOCK_THREAD_CPUTIME_ID

// processTime returns the processor time of this process so far.
func processTime() time.Duration { return clockTime(2) } // CLOCK_PROCESS_CPUTIME_ID

func clockTime(clock uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}

// runDelay returns how long this thread was ready to run while its processor
// was used by something else, so far; 0 if the system does not report it.
func runDelay() time.Duration {
	fd, err := syscall.Open("/proc/thread-self/schedstat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	var buf [96]byte
	n, err := syscall.Read(fd, buf[:])
	if err != nil {
		return 0
	}
	f := strings.Fields(string(buf[:max(n, 0)])) // time run, time delayed, slices; in nanoseconds
	if len(f) < 2 {
		return 0
	}
	d, _ := strconv.ParseInt(f[1], 10, 64)
	return time.Duration(d)
}

// pin keeps this thread on one processor. It reports whether that succeeded.
func pin(cpu int) bool {
	mask := uint64(1) << cpu
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, 8, uintptr(unsafe.Pointer(&mask)))
	return errno == 0
}
