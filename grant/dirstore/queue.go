package dirstore

import "sync"

// A queue lines up the goroutines of one Store for each record. Only the first
// in line then tries to take the record's lock against other processes. The two
// form one lock in two stages, always taken in this order: a goroutine that
// waits for the second holds no other lock.
type queue struct {
	mu    sync.Mutex // guards lines; not held while waiting
	lines map[string]*line
}

// A line is used by the goroutines that wait and by the one whose turn it is.
type line struct {
	turn  chan struct{} // of size 1: the goroutine that sends has its turn
	users int           // guarded by queue.mu
}

// enter returns the line for a name. Each call must be followed by one of
// leave.
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

// leave removes a line that is no longer used.
func (q *queue) leave(name string, l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(q.lines, name)
	}
}
