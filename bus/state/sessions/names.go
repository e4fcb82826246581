package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// maxName is the longest name, which is also the name of a folder.
const maxName = 64

// maxAnswer is the highest number of an answer.
const maxAnswer = 1_000_000

// A roll is the list of the named agents of a session.
type roll struct {
	Agents []member `json:"agents"`
}

// A member is an agent with a name.
type member struct {
	Agent string `json:"agent"`
	Name  string `json:"name"`
	// Answers is the highest number of its answers.
	Answers int `json:"answers"`
}

// Name returns the name and label of an agent's answer; without a label it counts. The same label means the same answer. A label with
// another agent's name is an error.
func (s *Sessions) Name(ctx context.Context, session, agent, label string) (Named, error) {
	key, err := bus.Token(session)
	if err != nil {
		return Named{}, fmt.Errorf("%w: its session: %w", ErrInvalid, err)
	}
	if _, err := bus.Token(agent); err != nil {
		return Named{}, fmt.Errorf("%w: its agent: %w", ErrInvalid, err)
	}
	name, number, err := parseLabel(label)
	if err != nil {
		return Named{}, err
	}
	select {
	case s.naming <- struct{}{}:
		defer func() { <-s.naming }()
	case <-ctx.Done():
		return Named{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	var m member
	err = kv.Retry(ctx, func(ctx context.Context) (done bool, err error) {
		m, done, err = s.try(ctx, key, session, member{Agent: agent, Name: name, Answers: number})
		return done, err
	})
	switch {
	case err == nil:
		return Named{Name: m.Name, Label: m.Name + "." + strconv.Itoa(m.Answers)}, nil
	case errors.Is(err, ErrTaken), errors.Is(err, ErrFull), errors.Is(err, ErrInvalid):
		return Named{}, err
	}
	return Named{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Room returns nil if the names use less than a percentage of their bucket.
func (s *Sessions) Room(ctx context.Context, percent int) error {
	switch within, err := s.names.Within(ctx, percent); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case !within:
		return fmt.Errorf("%w: the bucket %s is full except for the %d %% that are reserved for operators (--reserve); use fewer sessions, or wait until older ones expire", ErrNoRoom, Bucket, 100-percent)
	}
	return nil
}

// parseLabel splits a label into name and number, both zero for an empty label.
func parseLabel(label string) (name string, number int, err error) {
	if label == "" {
		return "", 0, nil
	}
	name, digits, ok := cutLabel(label)
	if !ok {
		return "", 0, fmt.Errorf("%w: the label %.80q has no number; write one such as agent2.1, or none at all", ErrInvalid, label)
	}
	number, err = strconv.Atoi(digits)
	if err != nil || number < 1 || number > maxAnswer || strconv.Itoa(number) != digits {
		return "", 0, fmt.Errorf("%w: the label %.80q ends in no number from 1 to %d; write one such as agent2.1", ErrInvalid, label, maxAnswer)
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, odd) {
		return "", 0, fmt.Errorf("%w: the name in the label %.80q is no word of at most %d letters, digits, _ and -; write one such as agent2.1", ErrInvalid, label, maxName)
	}
	return name, number, nil
}

// odd reports whether c is invalid in a name.
func odd(c rune) bool {
	return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// try makes one attempt to name an answer; false: another broker was faster.
func (s *Sessions) try(ctx context.Context, key, session string, wanted member) (member, bool, error) {
	e, err := s.names.Last(ctx, key)
	if err != nil {
		return member{}, false, err
	}
	var r roll
	if e.Kind == kv.Put && e.Revision > 0 {
		if err := schema.Unmarshal(e.Value, &r); err != nil {
			return member{}, false, fmt.Errorf("cannot read the key %s of the bucket %s; delete it, and the agents of that session get new names: %w", key, Bucket, err)
		}
	}
	m, changed, err := r.name(wanted, func(id string) bool { return s.isIn(ctx, id, session) })
	if err != nil || !changed {
		return m, true, err
	}
	data, err := schema.Marshal(&r)
	if err != nil {
		return m, false, err
	}
	_, err = s.names.Write(ctx, kv.Write{Key: key, Value: data, Last: e.Revision})
	if kv.Refused(err) {
		return m, false, nil
	}
	return m, err == nil, err
}

// isIn reports whether an agent with that id was seen in the session, here or on other brokers. A failure counts as no, because
// [schema.PeerAnswer.For] checks again for each reader.
func (s *Sessions) isIn(ctx context.Context, id, session string) bool {
	if s.Known(id).in(session) {
		return true
	}
	stored, err := s.stored(ctx, id)
	return err == nil && stored.in(session)
}

// name determines the name and number of an answer, and reports whether that changed the roll. isIn reports whether an id is that of an
// agent in the session.
func (r *roll) name(wanted member, isIn func(id string) bool) (m member, changed bool, err error) {
	i := slices.IndexFunc(r.Agents, func(m member) bool { return m.Agent == wanted.Agent })
	if i < 0 {
		if i, err = r.join(wanted, isIn); err != nil {
			return m, false, err
		}
		changed = true
	}
	known := &r.Agents[i]
	switch {
	case wanted.Name == "":
		wanted.Name, wanted.Answers = known.Name, known.Answers+1
	case wanted.Name != known.Name:
		return m, false, fmt.Errorf("%w: the agent is called %s in this session since its first answer, not %s; write a label such as %s.%d, or none",
			ErrTaken, known.Name, wanted.Name, known.Name, known.Answers+1)
	}
	if wanted.Answers > maxAnswer {
		return m, false, fmt.Errorf("%w: the agent has given %d answers", ErrFull, maxAnswer)
	}
	if wanted.Answers > known.Answers {
		known.Answers, changed = wanted.Answers, true
	}
	return wanted, changed, nil
}

// join gives an agent the wanted name, or the first free name that is no agent's id.
func (r *roll) join(wanted member, isIn func(id string) bool) (int, error) {
	if len(r.Agents) >= MaxAgents {
		return 0, fmt.Errorf("%w: %d of them have given answers; start another session", ErrFull, MaxAgents)
	}
	name := wanted.Name
	for n := 1; name == ""; n++ {
		if free := "agent" + strconv.Itoa(n); !r.taken(free) && !r.hasID(free) && !strings.EqualFold(free, wanted.Agent) && !isIn(free) {
			name = free
		}
	}
	if r.taken(name) {
		return 0, fmt.Errorf("%w: %s is another agent's in this session; write a label with another name, or none", ErrTaken, name)
	}
	r.Agents = append(r.Agents, member{Agent: wanted.Agent, Name: name})
	return len(r.Agents) - 1, nil
}

// taken reports whether an agent has this name, ignoring case, because some file systems do. Names that [schema.PeerAnswer.For] derives
// count, too.
func (r *roll) taken(name string) bool {
	return slices.ContainsFunc(r.Agents, func(m member) bool {
		return strings.EqualFold(m.Name, name) || strings.EqualFold(schema.PeerPrefix+m.Name, name) || strings.EqualFold(m.Name, schema.PeerPrefix+name)
	})
}

// hasID reports whether that is the id of an agent in the roll.
func (r *roll) hasID(name string) bool {
	return slices.ContainsFunc(r.Agents, func(m member) bool { return strings.EqualFold(m.Agent, name) })
}
