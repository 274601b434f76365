package grant

import "sort"

// slots is a set of slots, as ordered intervals that do not touch. Most
// additions lie above all existing slots.
type slots struct{ all []interval }

type interval struct{ lo, hi uint64 }

// add adds the slots [lo, hi). If one of them was already there, it returns it.
func (s *slots) add(lo, hi uint64) (again uint64, twice bool) {
	n := len(s.all)
	if n == 0 || s.all[n-1].hi < lo {
		s.all = append(s.all, interval{lo, hi})
		return 0, false
	}
	// The intervals [i, j) touch the new one and are merged with it.
	i := n - 1
	if s.all[i].lo > lo {
		i = sort.Search(n, func(i int) bool { return s.all[i].hi >= lo })
	}
	j := i
	for ; j < n && s.all[j].lo <= hi; j++ {
		if x := s.all[j]; !twice && x.lo < hi && lo < x.hi {
			again, twice = max(x.lo, lo), true
		}
	}
	if i == j {
		s.all = append(s.all, interval{})
		copy(s.all[i+1:], s.all[i:])
		s.all[i] = interval{lo, hi}
		return 0, false
	}
	s.all[i] = interval{min(lo, s.all[i].lo), max(hi, s.all[j-1].hi)}
	s.all = append(s.all[:i+1], s.all[j:]...)
	return again, twice
}
