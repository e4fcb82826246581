package bus

import (
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// BatchMsg returns the request to run b on subject, a [RunSubject] or a [FirstContactSubject].
// Headers carry all fields but the event's body.
func BatchMsg(subject string, b *schema.Batch) *nats.Msg {
	return new(Envelope).Batch(subject, b).Msg()
}

// Batch makes the [BatchMsg] in the envelope.
func (e *Envelope) Batch(subject string, b *schema.Batch) *Message {
	e.begin()
	e.text(schema.HeaderBatch, b.Batch)
	e.config(b)
	e.hooks(b.Hooks)
	e.text(schema.HeaderAgent, b.Agent)
	e.set(schema.HeaderEvent, string(b.Event))
	e.set(schema.HeaderID, b.ID)
	e.text(schema.HeaderTool, b.Tool)
	e.text(schema.HeaderSession, b.Session)
	e.left(b.Left)
	e.trace(b.Trace)
	return e.message(subject, b.Body)
}

// config writes the config version of b, followed by a blank and the fabric.
func (e *Envelope) config(b *schema.Batch) {
	e.name(schema.HeaderConfig)
	e.header = strconv.AppendUint(e.header, b.Version, 10)
	if b.Fabric != "" {
		e.header = append(e.header, ' ')
		e.value(b.Fabric)
	}
	e.end()
}

// hooks lists a batch's hooks.
func (e *Envelope) hooks(hooks []int) {
	e.name(schema.HeaderHooks)
	for i, h := range hooks {
		if i > 0 {
			e.header = append(e.header, ',')
		}
		e.header = strconv.AppendInt(e.header, int64(h), 10)
	}
	e.end()
}

// ParseBatchMsg parses a batch. With an error it also returns all fields that it could read.
func ParseBatchMsg(m *nats.Msg) (*schema.Batch, error) {
	in := reader{header: m.Header}
	b := &schema.Batch{
		Routing: schema.Routing{
			Event: in.eventType(), Agent: in.agent(), ID: in.eventID(),
			Tool: in.text(schema.HeaderTool), Session: in.text(schema.HeaderSession), Trace: in.trace(),
		},
		Hooks: in.hooks(), Left: in.left(), Body: m.Data,
	}
	b.Version, b.Fabric = in.config()
	in.required(schema.HeaderBatch, "the batch's id")
	b.Batch = in.text(schema.HeaderBatch)
	in.body(m.Data)
	return b, in.err
}

func (r *reader) eventType() schema.EventType {
	v := r.required(schema.HeaderEvent, "the event's name")
	if v == "" {
		return ""
	}
	t, err := schema.ParseEventType(v)
	if err != nil {
		r.fault("the header %s: %w", schema.HeaderEvent, err)
	}
	return t
}

func (r *reader) agent() string {
	r.required(schema.HeaderAgent, "the agent's id")
	return r.text(schema.HeaderAgent)
}

func (r *reader) config() (version uint64, fabric string) {
	v := r.required(schema.HeaderConfig, "the config version")
	if v == "" {
		return 0, ""
	}
	number, fabric, _ := strings.Cut(v, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		r.fault("the header %s is %.64q; send the config version as a number, then a blank and the fabric's id", schema.HeaderConfig, v)
	}
	return n, fabric
}

// hooks returns the batch's hooks: increasing indexes, because they are in registration order.
func (r *reader) hooks() []int {
	v := r.raw(schema.HeaderHooks, maxHooksHeader)
	if v == "" {
		r.fault("the header %s is missing; list the batch's hooks in it, such as 0,3", schema.HeaderHooks)
		return nil
	}
	n := strings.Count(v, ",") + 1
	if n > MaxHooks {
		r.fault("the header %s lists %d hooks; at most %d are allowed", schema.HeaderHooks, n, MaxHooks)
		return nil
	}
	hooks := make([]int, 0, n)
	for s := range strings.SplitSeq(v, ",") {
		const most = 9 // digits
		h, err := strconv.Atoi(s)
		if err != nil || len(s) > most || s != strconv.Itoa(h) || h < 0 {
			r.fault("the header %s lists %.64q; list the indexes of hooks, such as 0,3", schema.HeaderHooks, s)
			return nil
		}
		if len(hooks) > 0 && h <= hooks[len(hooks)-1] {
			r.fault("the header %s lists %d after %d; list each hook once, in registration order", schema.HeaderHooks, h, hooks[len(hooks)-1])
			return nil
		}
		hooks = append(hooks, h)
	}
	return hooks
}
