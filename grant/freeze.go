package grant

import "errors"

// freeze stops acquiring and renewing, because the store went back to an
// earlier state.
func (m *Machine) freeze() {
	if !m.frozen {
		m.frozen, m.frozenAt = true, m.wall
		m.alarm(AlarmInfo{Kind: RolledBack})
	}
	m.claim = nil
	m.fail(ErrRolledBack, min(max(m.window()/6, 100), configEvery*3/4))
}

// thaw checks whether the sequencer was fenced after the store went back.
func (m *Machine) thaw(e Event, value []byte) {
	if e.Err != nil {
		m.fail(errors.Join(ErrRolledBack, e.Err), 0)
		return
	}
	r, err := decodeConfig(configKey(m.set.Name), value)
	// A fence sets a floor far above all clocks. A floor belongs to a fence
	// after the store went back, or before anything was lost, if it is new, or
	// if it is so far above this clock that nothing can have been granted yet.
	if err != nil || r.Floor <= m.seenFloor && r.Floor <= m.frozenAt+m.sequencer.MaxAhead {
		m.freeze()
		return
	}
	m.frozen, m.failures, m.notBefore = false, 0, 0
	m.seenFloor, m.seenInc = r.Floor, 0 // what was seen before belongs to a state that is lost
	if m.hold != nil {
		m.fenced(r.Floor)
	}
}
