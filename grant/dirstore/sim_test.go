package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A simWorld is a machine with one directory: what its processes see of it, and
// which of that would be on disk if the power failed now.
type simWorld struct {
	files  map[string]*simName
	locks  map[string]*simLock // those that are taken
	errors int                 // how many times writing the directory has failed

	mu sync.Mutex // guards everything, if several goroutines run at once
}

// A simName is a name in the directory, and what it has named since it was last
// durable: an inode, or nil for none. The first entry is certainly on disk, the
// last is what everything sees. After a loss of power it is any of them,
// independently of other names: a rename may be half done.
type simName struct {
	was  []*simInode
	lost int // the number of first entries that were given up when writing the directory failed
}

// A simInode is a file.
type simInode struct {
	data    []byte
	synced  bool // the content is on the disk
	lost    bool // writing it has failed: syncing it again succeeds but does nothing
	settled bool
	marked  bool // settled may or may not be on disk
}

func newWorld(files []simImage) *simWorld {
	w := &simWorld{files: make(map[string]*simName), locks: make(map[string]*simLock)}
	for _, image := range files {
		w.files[image.name] = &simName{was: []*simInode{{data: []byte(image.data), synced: true, settled: image.settled}}}
	}
	return w
}

func (w *simWorld) see(name string) *simInode {
	if n := w.files[name]; n != nil {
		return n.was[len(n.was)-1]
	}
	return nil
}

func (w *simWorld) put(name string, i *simInode) {
	n := w.files[name]
	if n == nil {
		n = &simName{was: []*simInode{nil}}
		w.files[name] = n
	}
	n.was = append(n.was, i)
}

// String distinguishes worlds in which a crash may leave different states.
func (w *simWorld) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		fmt.Fprintf(&b, "%s %d", name, w.files[name].lost)
		for _, i := range w.files[name].was {
			if i == nil {
				b.WriteString(" none")
			} else {
				fmt.Fprintf(&b, " %q %v %v %v %v", i.data, i.synced, i.lost, i.settled, i.marked)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// flush makes everything durable.
func (w *simWorld) flush() {
	for _, n := range w.files {
		n.was = n.was[len(n.was)-1:]
	}
}

// A simImage is a file on the disk, after a crash.
type simImage struct {
	name    string
	data    string
	settled bool
}

// A simState is the content of the disk after a crash. Equal states have the
// same text.
type simState struct {
	files []simImage
	text  string
}

// crashStates returns everything that the disk may hold if the power fails now.
func (w *simWorld) crashStates() []simState {
	states := []simState{{}}
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		texts := make(map[string]bool) // of the images of this name
		var next []simState
		for _, i := range w.files[name].was {
			if i == nil {
				if !texts[""] {
					next = append(next, states...)
				}
				texts[""] = true
				continue
			}
			variants := i.images(name)
			if strings.HasPrefix(name, tempPrefix) {
				variants = variants[:1] // it is never read; see simDisk.read
			}
			for _, image := range variants {
				text := fmt.Sprintf("\n\t%s settled=%v %q", name, image.settled, image.data)
				if texts[text] {
					continue
				}
				texts[text] = true
				for _, s := range states {
					next = append(next, simState{append(s.files[:len(s.files):len(s.files)], image), s.text + text})
				}
			}
		}
		states = next
	}
	return states
}

// images returns what may be found of a file.
func (i *simInode) images(name string) []simImage {
	contents := []string{string(i.data)}
	if !i.synced {
		n := len(i.data)
		contents = append(contents, "", string(i.data[:n/2]), strings.Repeat("\x00", n), string(i.data[:n/2])+strings.Repeat("\x00", n-n/2))
	}
	var all []simImage
	for _, data := range contents {
		all = append(all, simImage{name, data, i.settled})
		if i.marked || !i.synced {
			all = append(all, simImage{name, data, !i.settled})
		}
	}
	return all
}

// A simProcess is one process, with one or more threads.
type simProcess struct {
	name string
	dead atomic.Bool
}

// A simThread is a goroutine of a process. If there is a scheduler, it stops
// before every call of the disk until the scheduler lets it continue.
type simThread struct {
	process *simProcess
	resume  chan simDecision
	at      note // the call before which it stopped, or ""
	waits   note // the lock that it could not take
	done    atomic.Bool
}

// A note is a string. It is atomic for threads that a timer wakes.
type note struct{ v atomic.Value }

func (n *note) set(s string) { n.v.Store(s) }

func (n *note) get() string {
	s, _ := n.v.Load().(string)
	return s
}

// simThreads knows the thread of each goroutine, because a disk does not know
// its caller.
type simThreads struct {
	only        *simThread // of a process with one thread
	mu          sync.Mutex
	byGoroutine map[string]*simThread
}

func goroutine() string {
	var b [32]byte
	fields := strings.Fields(string(b[:runtime.Stack(b[:], false)]))
	return fields[1] // goroutine 7 [running]:
}

func (ts *simThreads) add(t *simThread) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byGoroutine[goroutine()] = t
}

func (ts *simThreads) current() *simThread {
	if ts.only != nil {
		return ts.only // finding the goroutine takes long
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byGoroutine[goroutine()]
}

type simDecision byte

const (
	goOn simDecision = iota
	goOnAndFail
	die
)

// A simDisk is the disk as a thread of a process sees it. Calls of a dead
// process do nothing.
type simDisk struct {
	world   *simWorld
	process *simProcess
	threads *simThreads // nil without a scheduler
	trace   func(call string)
	fault   func(call string) error // for tests of one fault
}

var errSimulated = errors.New("input/output error, simulated")

// step is called at every call of the disk.
func (d *simDisk) step(call string) error {
	if d.process != nil && d.process.dead.Load() {
		runtime.Goexit()
	}
	var err error
	if d.threads != nil {
		t := d.threads.current()
		t.at.set(call)
		decision := <-t.resume
		t.at.set("")
		switch decision {
		case die:
			runtime.Goexit()
		case goOnAndFail:
			err = errSimulated
		}
	}
	if d.trace != nil {
		d.trace(call)
	}
	if d.fault != nil && err == nil {
		err = d.fault(call)
	}
	return err
}

func (d *simDisk) names() ([]string, error) {
	if err := d.step("names"); err != nil {
		return nil, err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	var names []string
	for name := range d.world.files {
		if d.world.see(name) != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d *simDisk) read(name string) ([]byte, bool, error) {
	if err := d.step("read " + name); err != nil {
		return nil, false, err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if strings.HasPrefix(name, tempPrefix) {
		panic("somebody reads " + name)
	}
	i := d.world.see(name)
	if i == nil {
		return nil, false, fs.ErrNotExist
	}
	return slices.Clone(i.data), i.settled, nil
}

func (d *simDisk) create(name string) (file, error) {
	if err := d.step("create " + name); err != nil {
		return nil, err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if d.world.see(name) != nil {
		return nil, fs.ErrExist
	}
	i := new(simInode)
	d.world.put(name, i)
	return &simFile{d, name, i}, nil
}

func (d *simDisk) settle(name string) error {
	if err := d.step("settle " + name); err != nil {
		return err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if i := d.world.see(name); i != nil {
		i.settled, i.marked = true, true
	}
	return nil
}

func (d *simDisk) rename(from, to string) error {
	if err := d.step("rename " + from + " " + to); err != nil {
		return err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	i := d.world.see(from)
	if i == nil {
		return fs.ErrNotExist
	}
	d.world.put(from, nil)
	d.world.put(to, i)
	return nil
}

func (d *simDisk) remove(name string) error {
	if err := d.step("remove " + name); err != nil {
		return err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if d.world.see(name) == nil {
		return fs.ErrNotExist
	}
	d.world.put(name, nil)
	return nil
}

func (d *simDisk) directory() (file, error) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	return &simDirectory{disk: d, told: d.world.errors}, nil
}

func (d *simDisk) lock(name string) (lock, error) {
	if err := d.step("lock " + name); err != nil {
		return nil, err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if d.world.see(name) == nil {
		d.world.put(name, &simInode{synced: true, settled: true})
	}
	return &simLock{disk: d, name: name}, nil
}

func (d *simDisk) close() error { return nil }

type simFile struct {
	disk *simDisk
	name string
	i    *simInode
}

func (f *simFile) Write(p []byte) (int, error) {
	if err := f.disk.step("write " + f.name); err != nil {
		return 0, err
	}
	f.disk.world.mu.Lock()
	defer f.disk.world.mu.Unlock()
	f.i.data = append(f.i.data, p...)
	f.i.synced = false
	return len(p), nil
}

func (f *simFile) Sync() error {
	err := f.disk.step("sync " + f.name)
	f.disk.world.mu.Lock()
	defer f.disk.world.mu.Unlock()
	switch {
	case err != nil:
		f.i.lost = true
	case !f.i.lost:
		f.i.synced = true
	}
	return err
}

func (f *simFile) Close() error { return nil }

// A simDirectory is one opening of the directory.
type simDirectory struct {
	disk *simDisk
	told int // how many errors this opening has reported, or preceded it
}

func (*simDirectory) Write([]byte) (int, error) { return 0, fs.ErrInvalid }
func (*simDirectory) Close() error              { return nil }

func (f *simDirectory) Sync() error {
	w := f.disk.world
	err := f.disk.step("sync directory")
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		// Unwritten data is given up, and counts as written.
		for _, n := range w.files {
			n.lost = len(n.was)
		}
		w.errors++
		f.told = w.errors
		return err
	}
	for _, n := range w.files {
		if len(n.was) > n.lost { // it has named something else since
			n.was, n.lost = n.was[len(n.was)-1:], 0
		}
	}
	if f.told < w.errors {
		f.told = w.errors
		return errSimulated
	}
	return nil
}

type simLock struct {
	disk *simDisk
	name string
}

func (l *simLock) try() (bool, error) {
	if err := l.disk.step("try " + l.name); err != nil {
		return false, err
	}
	w := l.disk.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if holder := w.locks[l.name]; holder != nil {
		if l.disk.threads != nil {
			l.disk.threads.current().waits.set(l.name)
		}
		return false, nil
	}
	w.locks[l.name] = l
	return true, nil
}

func (l *simLock) release() {
	l.disk.world.mu.Lock()
	defer l.disk.world.mu.Unlock()
	if l.disk.world.locks[l.name] == l {
		delete(l.disk.world.locks, l.name)
	}
}
