package queue

import "time"

// Due reports whether a claim may find something after a call of the tool, or at an event without a tool. It makes no
// request, and may be true without due items.
func (q *Queue) Due(agent, session, tool string) bool {
	a, err := q.agents.get(agent)
	if err != nil {
		return false
	}
	k := a.cursor.Load()
	q.index.mu.RLock()
	defer q.index.mu.RUnlock()
	if q.index.first(a.scope, k, a, k.AckedTo+1, tool) {
		return true
	}
	if q.index.first(allScope, k, a, k.AckedTo+1, tool) {
		return true
	}
	return q.index.first(a.scopeOf(session), k, a, 1, tool)
}

// Holds reports whether the mirror has a lease of the event: the same event gets the same items again. It makes no
// request.
func (q *Queue) Holds(agent, event string) bool {
	a := q.agents.find(agent)
	return a != nil && a.cursor.Load().of(event) != nil
}

// first reports whether the list has, from a sequence on, an item that the agent may still get. The caller holds the
// lock.
func (x *index) first(scope string, k *known, a *agent, from uint64, tool string) bool {
	l := x.lists[scope]
	if l == nil || !l.fits(tool) {
		return false
	}
	i, _ := l.find(from)
	since := a.since(&k.cursor)
	for _, e := range l.items[i:] {
		if k.done(e) || e.kind != forAgent && (e.item.Except == a.name || !e.item.LateJoiners && (since == 0 || e.seq() < since)) {
			continue
		}
		if l := k.leased(e.seq()); l == nil || time.Duration(l.Left) <= time.Since(k.seen) {
			return true
		}
	}
	return false
}

// any reports whether the list has items.
func (x *index) any(scope string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lists[scope] != nil
}

// newestOf returns the newest item of the agent's lists that the mirror has not applied yet; 0: there is no such item.
func (x *index) newestOf(own, session string) (newest uint64) {
	scopes := [...]string{own, allScope, session}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range scopes {
		if l := x.lists[s]; l != nil && len(l.items) > 0 {
			newest = max(newest, l.items[len(l.items)-1].seq())
		}
	}
	if newest <= x.position {
		return 0
	}
	return newest
}
