package observe

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// The bounds of the counts of shadow hooks, which have to fit into one message. A line is one hook
// with the decision made and the decision that it would have made.
const (
	maxShadowLines  = 2048
	maxShadowReason = 200
)

// Shadows counts what the shadow hooks of the active configuration would have
// changed.
type Shadows struct {
	mu    sync.Mutex
	hooks map[string]map[change]*schema.ShadowCount // guarded by mu
	lines int                                       // guarded by mu; the number of counts
}

// change is the decision made, and the decision that a shadow hook would have made.
type change struct{ decided, would schema.Decision }

// Configure counts the shadow hooks of a configuration. It keeps the counts of hooks that were
// there before, and drops those of the others.
func (s *Shadows) Configure(cfg *schema.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.hooks
	s.hooks, s.lines = make(map[string]map[change]*schema.ShadowCount), 0
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Mode == schema.Shadow {
			s.hooks[h.Name] = before[h.Name]
			s.lines += len(before[h.Name])
		}
	}
}

// Add counts one call.
func (s *Shadows) Add(event string, is *dispatch.Shadowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, known := s.hooks[is.Hook.Name]
	if !known {
		return // its configuration is not active any more
	}
	if changes == nil {
		changes = make(map[change]*schema.ShadowCount)
		s.hooks[is.Hook.Name] = changes
	}
	c := change{is.Decided, is.Would}
	n := changes[c]
	if n == nil {
		if s.lines >= maxShadowLines {
			return
		}
		n = &schema.ShadowCount{Decided: c.decided, Would: c.would}
		changes[c] = n
		s.lines++
	}
	n.Count++
	if c.decided != c.would && event >= n.Last { // ids begin with their time
		n.Last, n.Reason = event, shortened(is.Part.Reason)
	}
}

func shortened(reason string) string {
	if len(reason) <= maxShadowReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxShadowReason], "") + "…"
}

// Status returns the counts of each hook.
func (s *Shadows) Status() []schema.ShadowStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]schema.ShadowStatus, 0, len(s.hooks))
	for name, changes := range s.hooks {
		if len(all) >= maxShadowLines {
			break
		}
		h := schema.ShadowStatus{Hook: name, Counts: make([]schema.ShadowCount, 0, len(changes))}
		for _, n := range changes {
			h.Counts = append(h.Counts, *n)
		}
		all = append(all, h)
	}
	return all
}

// AddShadow adds another broker's counts of one hook to a sum.
func AddShadow(sum []schema.ShadowStatus, h schema.ShadowStatus) []schema.ShadowStatus {
	i := slices.IndexFunc(sum, func(s schema.ShadowStatus) bool { return s.Hook == h.Hook })
	if i < 0 {
		return append(sum, h)
	}
	counts := sum[i].Counts
	for _, n := range h.Counts {
		j := slices.IndexFunc(counts, func(c schema.ShadowCount) bool { return c.Decided == n.Decided && c.Would == n.Would })
		if j < 0 {
			counts = append(counts, n)
			continue
		}
		counts[j].Count += n.Count
		if n.Last > counts[j].Last { // ids begin with their time
			counts[j].Last, counts[j].Reason = n.Last, n.Reason
		}
	}
	sum[i].Counts = counts
	return sum
}

// SortShadows puts hooks in the order of their names, and of each the most frequent
// first.
func SortShadows(all []schema.ShadowStatus) {
	slices.SortFunc(all, func(a, b schema.ShadowStatus) int { return cmp.Compare(a.Hook, b.Hook) })
	for i := range all {
		slices.SortFunc(all[i].Counts, func(a, b schema.ShadowCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Decided, b.Decided), cmp.Compare(a.Would, b.Would))
		})
	}
}
