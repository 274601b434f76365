package dirstore

import "sync"

// A queue keeps the goroutines of one Store in line for each record. Only the
// first in line then tries for the record's lock against other processes. The
// two are one lock in two stages, always taken in this order: a goroutine that
// waits for the second holds no other lock.
type queue struct {
	mu    sync.Mutex // guards lines; not held while waiting
	lines map[string]*line
}

// A line is in use by those who wait and by the one who is served.
type line struct {
	turn  chan struct{} // of size 1: who puts something in is served
	users int           // guarded by queue.mu
}

// enter returns the line for a name. Each call needs one of leave.
func (q *queue) enter(name string) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[name]
	if l == nil {
		if q.lines == nil {
			q.lines = make(map[string]*line)
		}
		l = &line{turn: make(chan struct{}, 1)}
		q.lines[name] = l
	}
	l.users++
	return l
}

// leave forgets a line that nobody uses any more.
func (q *queue) leave(name string, l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(q.lines, name)
	}
}
