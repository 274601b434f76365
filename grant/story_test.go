package grant

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata/stories; explain every change")

// TestStories runs the scripts of testdata/stories. A line is a command, a
// remark (#), or, indented, what the command before it printed.
//
//	now T                       the time of all, in ms
//	create [window W]           the sequencer, with a window of 30000 ms
//	NAME join|leave|demand|hint|tick|wentback
//	NAME used T                 the generator has used all before T
//	NAME clock OFFSET           from now on, against all others
//	NAME answer                 the store handles the request, and answers
//	NAME answer lost            the store handles it, but the answer is lost
//	NAME answer drop            the store does not handle it, and no answer comes
//	NAME answer unsent          the same, and the driver knows
//	NAME answer refused         the store refuses a write for no reason that a read shows
//	NAME answer late            no answer comes; "NAME late" handles it
//	NAME answer shown           its write is visible but not durable, and no answer comes
//	NAME run [drop|readonly]    answers until there are no more requests; readonly:
//	                            no write is sent
//	NAME clone OTHER            OTHER continues with NAME's memory
//	detach|attach|destroy|fence|repair
//	                            the operations on the whole sequencer
//	backup|restore              of the whole store
//	failover                    the store keeps only durable values: those of answered writes,
//	                            and all earlier ones
//	show                        the records
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want := must.Get(os.ReadFile(file))(t)
			s := &story{t: t, mapStore: mapStore{values: make(map[string][]byte)}, members: make(map[string]*actor), names: make(map[string]string), closer: windowCloser{written: make(map[string][]byte)}}
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, "    ") {
					continue
				}
				got.WriteString(line)
				if command := strings.TrimSpace(line); command != "" && command[0] != '#' {
					s.out = nil
					s.do(strings.Fields(command))
					for _, l := range s.out {
						got.WriteString("    " + l + "\n")
					}
				}
			}
			if *update {
				must.Do(t, os.WriteFile(file, []byte(got.String()), 0o666))
				return
			}
			if got.String() != string(want) {
				t.Errorf("%s: got\n%s\nwant\n%s", file, got.String(), want)
			}
		})
	}
}

// A story is the world of a script: a store and members, all under manual
// control.
type story struct {
	mapStore
	t       *testing.T
	now     int64
	backup  map[string][]byte
	durable map[string][]byte
	members map[string]*actor
	names   map[string]string // of owners
	out     []string
	random  uint64
	closer  windowCloser
}

// An actor is a member: its machine, and the state of its driver.
type actor struct {
	name    string
	m       *machine
	offset  int64
	used    int64
	request *action
	late    *action
}

func (s *story) print(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf(format, args...))
}

func (s *story) do(f []string) {
	s.t.Helper()
	ctx := context.Background()
	now := func() time.Time { return time.UnixMilli(s.now) }
	result := func(info any, err error) {
		if err != nil {
			s.print("%v", err)
		}
	}
	switch f[0] {
	case "now":
		s.now = s.number(f[1])
	case "create":
		window, o := int64(30_000), &CreateOptions{Now: now}
		switch {
		case len(f) > 2 && f[1] == "floor":
			o.Floor = time.UnixMilli(s.number(f[2]))
		case len(f) > 2:
			window = s.number(f[2])
		}
		result(Create(ctx, s, "s", testConfig("default,epoch=0", time.Duration(window)*time.Millisecond), o))
	case "detach", "destroy":
		through, last := Detaching, Detached
		if f[0] == "destroy" {
			through, last = Destroying, Destroyed
		}
		info, waiting, err := s.closer.step(ctx, s, "s", f[0], through, last, now())
		result(info, err)
		if info.State == last {
			s.closer = windowCloser{written: make(map[string][]byte)} // the next one is another operation
		}
		s.print("%v", info.State)
		for _, w := range waiting {
			s.print("waits for node %d until %d", w.Node, w.Until.UnixMilli())
		}
	case "attach":
		result(Attach(ctx, s, "s"))
	case "fence":
		o := &FenceOptions{Now: now}
		if len(f) > 1 {
			o.LongestWindow = time.Duration(s.number(f[1])) * time.Millisecond
		}
		r, err := Fence(ctx, s, "s", o)
		result(nil, err)
		s.print("floor %d, %d records, longest window %v, unsure %t", r.Floor.UnixMilli(), r.Records, r.LongestWindow, r.Unsure != "")
	case "repair":
		r, err := Repair(ctx, s, "s", &RepairOptions{Now: now})
		result(nil, err)
		for _, n := range r.Nodes {
			s.print("node %d: gives [%d, %d) back, keeps [%d, %d)", n.Node, n.From.UnixMilli(), n.To.UnixMilli(), n.To.UnixMilli(), n.Until.UnixMilli())
		}
		for _, n := range r.Left {
			s.print("node %d: left", n.Node)
		}
	case "failover":
		s.values = maps.Clone(s.durable)
	case "backup":
		s.backup = maps.Clone(s.values)
	case "restore":
		s.values = maps.Clone(s.backup)
	case "show":
		for _, key := range slices.Sorted(maps.Keys(s.values)) {
			s.print("%s", s.describe(key, s.values[key]))
		}
	default:
		s.member(f)
	}
}

func (s *story) number(text string) int64 {
	s.t.Helper()
	n := must.Get(strconv.ParseInt(text, 10, 64))(s.t)
	return n
}

func (s *story) member(f []string) {
	s.t.Helper()
	a := s.members[f[0]]
	if a == nil {
		a = &actor{name: f[0]}
		set := settings{name: "s", host: f[0]}
		if len(f) > 3 && f[1] == "nodes" {
			set.Nodes = &NodeRange{uint64(s.number(f[2])), uint64(s.number(f[3]))}
			set.AllowClockAhead = len(f) > 4 && f[4] == "ahead"
			set.storeClock = len(f) > 4 && f[4] == "clock"
		}
		set.random = func() uint64 {
			s.random += 0x9E3779B97F4A7C15
			z := s.random
			z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			return z ^ z>>31
		}
		a.m = newMachine(set)
		s.members[f[0]] = a
		s.names[a.m.owner] = f[0]
	}
	kinds := map[string]eventKind{"join": eventJoin, "leave": eventLeave, "demand": eventDemand, "hint": eventHint, "tick": eventTick, "wentback": eventWentBack}
	switch f[1] {
	case "nodes":
	case "used":
		a.used = s.number(f[2])
	case "clock":
		a.offset = s.number(f[2])
	case "answer":
		how := ""
		if len(f) > 2 {
			how = f[2]
		}
		s.answer(a, how)
	case "late":
		applied, _ := s.CAS(context.Background(), a.late.Key, a.late.Old, a.late.Next)
		s.print("applied: %t", applied)
		a.late = nil
	case "run":
		for range 50 {
			if a.request == nil {
				return
			}
			s.answer(a, strings.Join(f[2:], ""))
		}
		s.t.Fatalf("%s never comes to an end", a.name)
	case "clone":
		s.members[f[2]] = &actor{name: f[2], m: a.m.clone(), offset: a.offset, used: a.used}
	default:
		kind, ok := kinds[f[1]]
		if !ok {
			s.t.Fatalf("unknown command %q", f)
		}
		s.step(a, event{Kind: kind})
	}
}

var errNoAnswer = errors.New("no answer")

// answer lets the store handle a member's request.
func (s *story) answer(a *actor, how string) {
	s.t.Helper()
	r := a.request
	if r == nil {
		s.t.Fatalf("%s asks for nothing", a.name)
	}
	a.request = nil
	var e event
	switch {
	case how == "drop":
		e.Err = errNoAnswer
	case how == "unsent", how == "readonly" && r.Kind == actionCAS:
		e.Err = ErrNotSent
	case how == "refused":
	case how == "late":
		a.late, e.Err = r, errNoAnswer
	case r.Kind == actionCAS && how == "shown":
		if bytes.Equal(s.values[r.Key], r.Old) {
			s.values[r.Key] = r.Next
		}
		e.Err = errNoAnswer
	case r.Kind == actionTime:
		e.Time, e.Within = s.now, 5
	default:
		e = (&Keeper{store: s}).callStore(context.Background(), time.Minute, *r)
	}
	if how == "lost" {
		e = event{Err: errNoAnswer}
	}
	e.Kind = eventAnswered
	s.step(a, e)
}

func (s *story) step(a *actor, e event) {
	e.Wall, e.Mono, e.Used = s.now+a.offset, s.now, a.used
	for _, x := range a.m.step(e) {
		if _, ok := s.names[a.m.owner]; !ok {
			s.names[a.m.owner] = a.name + "'"
		}
		switch x.Kind {
		case actionGet:
			s.print("%s: get %s", a.name, short(x.Key))
		case actionGetMany:
			s.print("%s: get %d records", a.name, len(x.Keys))
		case actionList:
			s.print("%s: list", a.name)
		case actionCAS:
			was := "absent"
			if x.Old != nil {
				was = s.describe(x.Key, x.Old)
			}
			s.print("%s: cas %s -> %s", a.name, was, s.describe(x.Key, x.Next))
		case actionTime:
			s.print("%s: ask the store for its time", a.name)
		case actionBegin:
			s.print("%s: begin node %d [%d, %d)", a.name, x.Node, x.From, x.Until)
		case actionExtend:
			s.print("%s: extend to %d", a.name, x.Until)
		case actionSeal:
			s.print("%s: seal", a.name)
		case actionTimer:
			s.print("%s: wake at %d", a.name, x.At)
		case actionReport:
			text := x.Status.Phase.String()
			if x.Status.Phase >= Holding {
				text += fmt.Sprintf(" node %d until %d", x.Status.Node, x.Status.Until.UnixMilli())
			}
			if x.Status.Err != nil {
				text += ": " + x.Status.Err.Error()
			}
			s.print("%s: is %s", a.name, text)
		case actionAlarm:
			s.print("%s: ALARM %s node %d [%d, %d) %v", a.name, x.Alarm.Kind, x.Alarm.Node, x.Alarm.From, x.Alarm.Until, x.Alarm.By)
		}
		if x.isRequest() {
			if a.request != nil {
				s.t.Fatalf("%s asks twice", a.name)
			}
			a.request = &x
		}
		if x.Kind == actionSeal {
			defer s.step(a, event{Kind: eventSealed})
		}
	}
}

func short(key string) string { return strings.TrimPrefix(key, "v1/s/") }

// describe formats a record for readers.
func (s *story) describe(key string, value []byte) string {
	if strings.HasSuffix(key, "/config") {
		r, err := decodeInfo(key, value)
		if err != nil {
			return err.Error()
		}
		floor := "no floor"
		if !r.Floor.IsZero() {
			floor = fmt.Sprint("floor ", r.Floor.UnixMilli())
		}
		return fmt.Sprintf("config %v, incarnation %d, %s", r.State, r.Incarnation, floor)
	}
	r, err := decodeNode(key, value)
	if err != nil {
		return err.Error()
	}
	owner := s.names[r.Owner]
	if owner == "" {
		owner = "no owner"
	}
	text := fmt.Sprintf("%s %s by %s until %d", short(key), r.State, owner, r.Until)
	if r.Spoiled.length() > 0 {
		text += fmt.Sprintf(", spoiled [%d, %d)", r.Spoiled.from, r.Spoiled.until)
	}
	return text
}

// CAS makes the values of an answered write, and all earlier ones, durable.
func (s *story) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	applied, err := s.mapStore.CAS(ctx, key, old, next)
	if applied {
		s.durable = maps.Clone(s.values)
	}
	return applied, err
}
