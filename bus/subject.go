package bus

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// The subjects that subscribers use.
const (
	// EventsWildcard matches all events of all agents.
	EventsWildcard = "hook.v1.event.*.*"
	// BeatsWildcard matches the heartbeats of all workers.
	BeatsWildcard = "hook.v1.beat.*.*"
	// ControlWildcard matches all control requests.
	ControlWildcard = "hook.v1.ctl.*.*"
	// FeedsWildcard matches the records of all verdicts.
	FeedsWildcard = "hook.v1.feed.*"
	// RecordsWildcard matches the records that brokers store.
	RecordsWildcard = "hook.v1.record.*"
	// ConfigChanged is the subject on which a change of the configuration is announced,
	// without the new configuration.
	ConfigChanged = "hook.v1.config"
	// FeedOfAll is the subject of records that belong to no single agent.
	FeedOfAll = "hook.v1.feed._"
)

// AgainSuffix ends the subject of an event that is sent again because the aggregator did not
// answer. It reaches every aggregator: a queue group could choose the silent one again.
const AgainSuffix = ".again"

// The queue groups. One member of each gets a message.
const (
	// QueueAggregators shares [EventsWildcard] among the aggregators.
	QueueAggregators = "aggregators"
	// QueueWorkers shares a pool's [FirstContactSubject] among its workers.
	QueueWorkers = "workers"
)

const (
	eventPrefix   = "hook.v1.event."
	runPrefix     = "hook.v1.run."
	beatPrefix    = "hook.v1.beat."
	controlPrefix = "hook.v1.ctl."
	feedPrefix    = "hook.v1.feed."
	recordPrefix  = "hook.v1.record."
	replyPrefix   = "hook.v1.reply."
)

// noAgent takes the place of the agent in control subjects that concern no single agent.
const noAgent = "_"

// maxVerb bounds a control verb.
const maxVerb = 32

// EventSubject returns the subject for events of type t of agent.
func EventSubject(agent string, t schema.EventType) (string, error) {
	t, err := schema.ParseEventType(string(t))
	if err != nil {
		return "", err
	}
	tok, err := Token(agent)
	if err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	return eventPrefix + tok + "." + string(t), nil
}

// ParseEventSubject returns the agent and the event type. Both are parts of subj, so that the
// name of an ordinary agent costs no allocation.
func ParseEventSubject(subj string) (agent string, t schema.EventType, err error) {
	tok, event, err := split2(subj, eventPrefix, "hook.v1.event.<agent>.<event>")
	if err != nil {
		return "", "", err
	}
	if t, err = schema.ParseEventType(event); err != nil {
		return "", "", fmt.Errorf("subject %q: %w", subj, err)
	}
	if agent, err = ParseToken(tok); err != nil {
		return "", "", fmt.Errorf("subject %q: agent: %w", subj, err)
	}
	return agent, t, nil
}

// RunSubject returns the subject for batches to one worker of a pool.
func RunSubject(pool, worker string) (string, error) {
	return poolSubject(runPrefix, pool, worker)
}

// FirstContactSubject returns the subject for batches to any worker of a pool, in the queue
// group [QueueWorkers]. It is used before the first heartbeat of the pool.
func FirstContactSubject(pool string) (string, error) {
	tok, err := Token(pool)
	if err != nil {
		return "", fmt.Errorf("pool: %w", err)
	}
	return runPrefix + tok, nil
}

// Replies returns the prefix of the subjects for answers to one broker's batches; the last token
// is that of a batch. It is no inbox ([IsInbox]): workers know the subject of their batches, and
// must not be able to make a broker send another answer to it.
func Replies() string { return replyPrefix + rand.Text() + "." }

// IsReply reports whether a worker may answer a batch on subject. Brokers send nothing there.
func IsReply(subject string) bool { return strings.HasPrefix(subject, replyPrefix) || IsInbox(subject) }

// BeatSubject returns the subject for the heartbeats of one worker of a pool.
func BeatSubject(pool, worker string) (string, error) {
	return poolSubject(beatPrefix, pool, worker)
}

// ParseBeatSubject returns the pool and the worker of a heartbeat's subject.
func ParseBeatSubject(subj string) (pool, worker string, err error) {
	p, w, err := split2(subj, beatPrefix, "hook.v1.beat.<pool>.<worker>")
	if err != nil {
		return "", "", err
	}
	if pool, err = ParseToken(p); err != nil {
		return "", "", fmt.Errorf("subject %q: pool: %w", subj, err)
	}
	if worker, err = ParseToken(w); err != nil {
		return "", "", fmt.Errorf("subject %q: worker: %w", subj, err)
	}
	return pool, worker, nil
}

// ControlSubject returns the subject for the control request verb about agent; an empty agent
// means no single agent.
func ControlSubject(verb, agent string) (string, error) {
	if err := checkVerb(verb); err != nil {
		return "", err
	}
	tok := noAgent
	if agent != "" {
		var err error
		if tok, err = Token(agent); err != nil {
			return "", fmt.Errorf("agent: %w", err)
		}
	}
	return controlPrefix + verb + "." + tok, nil
}

// ControlVerb returns the subject that matches all control requests of a verb.
func ControlVerb(verb string) string { return controlPrefix + verb + ".*" }

// ParseControlSubject returns the verb and the agent; an empty agent means no single agent.
// It does not check that the verb exists.
func ParseControlSubject(subj string) (verb, agent string, err error) {
	verb, tok, err := split2(subj, controlPrefix, "hook.v1.ctl.<verb>.<agent or _>")
	if err != nil {
		return "", "", err
	}
	if err := checkVerb(verb); err != nil {
		return "", "", fmt.Errorf("subject %q: %w", subj, err)
	}
	if tok == noAgent {
		return verb, "", nil
	}
	if agent, err = ParseToken(tok); err != nil {
		return "", "", fmt.Errorf("subject %q: agent: %w", subj, err)
	}
	return verb, agent, nil
}

// FeedSubject returns the subject for the records of an agent's verdicts.
func FeedSubject(agent string) (string, error) {
	tok, err := Token(agent)
	if err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	return feedPrefix + tok, nil
}

// RecordSubject returns the subject for the records that a broker stores.
func RecordSubject(broker string) (string, error) {
	tok, err := Token(broker)
	if err != nil {
		return "", fmt.Errorf("broker: %w", err)
	}
	return recordPrefix + tok, nil
}

// ParseRecordSubject returns the broker of a record's subject.
func ParseRecordSubject(subj string) (broker string, err error) {
	tok, ok := strings.CutPrefix(subj, recordPrefix)
	if !ok {
		return "", fmt.Errorf("subject %q does not have the form hook.v1.record.<broker>", subj)
	}
	if broker, err = ParseToken(tok); err != nil {
		return "", fmt.Errorf("subject %q: broker: %w", subj, err)
	}
	return broker, nil
}

func poolSubject(prefix, pool, worker string) (string, error) {
	p, err := Token(pool)
	if err != nil {
		return "", fmt.Errorf("pool: %w", err)
	}
	w, err := Token(worker)
	if err != nil {
		return "", fmt.Errorf("worker: %w", err)
	}
	return prefix + p + "." + w, nil
}

// split2 returns the two tokens that follow prefix in subj.
func split2(subj, prefix, form string) (string, string, error) {
	rest, ok := strings.CutPrefix(subj, prefix)
	if ok {
		if i := strings.IndexByte(rest, '.'); i >= 0 && strings.IndexByte(rest[i+1:], '.') < 0 {
			return rest[:i], rest[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("subject %q does not have the form %s", subj, form)
}

func checkVerb(verb string) error {
	ok := verb != "" && len(verb) <= maxVerb
	for i := 0; ok && i < len(verb); i++ {
		c := verb[i]
		ok = c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%.40q is not a control verb; use a lower-case word such as inject or status", verb)
	}
	return nil
}
