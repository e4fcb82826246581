package bus

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// The subjects that subscribers use.
const (
	// EventsWildcard is every question of every agent.
	EventsWildcard = "hook.v1.event.*.*"
	// BeatsWildcard is every beat of every worker.
	BeatsWildcard = "hook.v1.beat.*.*"
	// ControlWildcard is every control request.
	ControlWildcard = "hook.v1.ctl.*.*"
	// FeedsWildcard is the record of every verdict.
	FeedsWildcard = "hook.v1.feed.*"
	// RecordsWildcard is what all brokers write down of the feed.
	RecordsWildcard = "hook.v1.record.*"
	// ConfigChanged is where whoever changed the configuration says so, without a
	// word of what it is now.
	ConfigChanged = "hook.v1.config"
	// FeedOfAll is the record of what is about no agent in particular.
	FeedOfAll = "hook.v1.feed._"
)

// AgainSuffix ends the subject of an event that is asked once more, because
// the one who was asked went silent. It reaches every aggregator: in a queue
// group the silent one could be met again.
const AgainSuffix = ".again"

// The queue groups: one member of each gets a message.
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

// nobody is the place of the agent in control subjects that are about none.
const nobody = "_"

// maxVerb bounds a control verb.
const maxVerb = 32

// EventSubject is where agent asks about a moment of the kind t.
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

// ParseEventSubject returns who asks about what. Both are parts of subj, so
// that an ordinary agent's name costs no allocation.
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

// RunSubject is where one worker of a pool takes batches.
func RunSubject(pool, worker string) (string, error) {
	return poolSubject(runPrefix, pool, worker)
}

// FirstContactSubject is where any worker of a pool takes a batch, in the
// queue group [QueueWorkers]: for pools of which no beat was heard yet.
func FirstContactSubject(pool string) (string, error) {
	tok, err := Token(pool)
	if err != nil {
		return "", fmt.Errorf("pool: %w", err)
	}
	return runPrefix + tok, nil
}

// Replies is where one broker hears workers' answers to its batches, without the last
// token, which is a batch's. It is no inbox ([IsInbox]): workers know the one of their
// batches, and could have a broker answer something else in the place of a worker.
func Replies() string { return replyPrefix + rand.Text() + "." }

// IsReply reports whether a batch may be answered on subject: no broker sends
// anything else there.
func IsReply(subject string) bool { return strings.HasPrefix(subject, replyPrefix) || IsInbox(subject) }

// BeatSubject is where one worker of a pool says how it is.
func BeatSubject(pool, worker string) (string, error) {
	return poolSubject(beatPrefix, pool, worker)
}

// ParseBeatSubject returns whose beat was published on subj.
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

// ControlSubject is where brokers take the control request verb about agent.
// An empty agent is a request that is about no agent in particular.
func ControlSubject(verb, agent string) (string, error) {
	if err := checkVerb(verb); err != nil {
		return "", err
	}
	tok := nobody
	if agent != "" {
		var err error
		if tok, err = Token(agent); err != nil {
			return "", fmt.Errorf("agent: %w", err)
		}
	}
	return controlPrefix + verb + "." + tok, nil
}

// ControlVerb is every control request of a verb.
func ControlVerb(verb string) string { return controlPrefix + verb + ".*" }

// ParseControlSubject returns what is requested, and about whom; an empty
// agent is nobody in particular. Whether the verb exists is for its servers.
func ParseControlSubject(subj string) (verb, agent string, err error) {
	verb, tok, err := split2(subj, controlPrefix, "hook.v1.ctl.<verb>.<agent or _>")
	if err != nil {
		return "", "", err
	}
	if err := checkVerb(verb); err != nil {
		return "", "", fmt.Errorf("subject %q: %w", subj, err)
	}
	if tok == nobody {
		return verb, "", nil
	}
	if agent, err = ParseToken(tok); err != nil {
		return "", "", fmt.Errorf("subject %q: agent: %w", subj, err)
	}
	return verb, agent, nil
}

// FeedSubject is where the records of an agent's verdicts are published.
func FeedSubject(agent string) (string, error) {
	tok, err := Token(agent)
	if err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	return feedPrefix + tok, nil
}

// RecordSubject is where a broker publishes what is written down of its verdicts.
func RecordSubject(broker string) (string, error) {
	tok, err := Token(broker)
	if err != nil {
		return "", fmt.Errorf("broker: %w", err)
	}
	return recordPrefix + tok, nil
}

// ParseRecordSubject returns whose records were published on subj.
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
