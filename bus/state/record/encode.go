package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// hashPrefix names the algorithm, as digests of stored objects do.
const hashPrefix = "sha256-"

// encoder makes lines of entries. It is of one goroutine.
type encoder struct {
	o       *Options
	scratch []byte        // for canonical forms
	rec     schema.Record // the record that is being written
	out     []byte        // its line
}

func newEncoder(o *Options) *encoder {
	if o.Rules == nil {
		o.Rules = new(redact.Rules)
	}
	return &encoder{o: o}
}

// spare is how much room is kept for the next record.
const spare = 1 << 20

// line is the line of an entry, with its line feed, when the server's clock is that far
// ahead of ours. It is good until the next one.
func (c *encoder) line(e *Entry, ahead time.Duration) ([]byte, error) {
	rec := &c.rec
	*rec = *e.Record
	defer func() { c.rec = schema.Record{} }() // what it holds is not kept for the next one
	rec.Broker = c.o.Broker
	if !rec.Unjudged { // that is the time of a shim
		rec.Time = rec.Time.Add(ahead)
	}
	var b body
	if len(e.Body) > 0 {
		b = scan(e.Body)
		rec.Runtime, rec.ToolKind, rec.Host = b.text(b.runtime), b.text(b.kind), b.host()
		rec.InputHash = c.hash(b.subject())
	}
	if rec.Host == "" && c.o.Host != nil && rec.Agent != "" {
		rec.Host = c.o.Host(rec.Agent)
	}
	c.redact(rec, e, &b)
	data, err := schema.AppendRecord(c.out[:0], rec)
	if err == nil && len(data) > maxRecord {
		trim(rec)
		data, err = schema.AppendRecord(data[:0], rec)
	}
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("it has %d bytes without its lists; at most %d are kept", len(data), maxRecord)
	}
	data = append(data, '\n')
	if c.out = data; cap(data) > spare {
		c.out = nil
	}
	return data, err
}

// trim leaves out what may be of any size.
func trim(rec *schema.Record) {
	const few = 16
	if rec.Content != nil {
		rec.Content, rec.Cut = nil, append(rec.Cut, "content")
	}
	if len(rec.ExecutedHooks) > few {
		rec.ExecutedHooks, rec.Cut = rec.ExecutedHooks[:few], append(rec.Cut, "executed_hooks")
	}
	if len(rec.HookErrors) > few {
		rec.HookErrors, rec.Cut = rec.HookErrors[:few], append(rec.Cut, "hook_errors")
	}
	if len(rec.Injections) > few {
		rec.Injections, rec.Cut = rec.Injections[:few], append(rec.Cut, "injections")
	}
}

// hash is the SHA-256 of the canonical form of a value; empty: there is none, or it
// cannot be read. What is canonical is so as it is.
func (c *encoder) hash(v jsontext.Value, canonical bool) string {
	if len(v) == 0 {
		return ""
	}
	form := []byte(v)
	if !canonical {
		var err error
		form, err = jsontext.AppendFormat(c.scratch[:0], v, jsontext.AllowInvalidUTF8(true), jsontext.ReorderRawObjects(true),
			jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true))
		if err != nil {
			return ""
		}
		if c.scratch = form; cap(form) > spare {
			c.scratch = nil
		}
	}
	sum := sha256.Sum256(form)
	var text [len(hashPrefix) + 2*sha256.Size]byte
	hex.Encode(text[copy(text[:], hashPrefix):], sum[:])
	return string(text[:])
}

// redact takes out of what is told what looks like a secret, and what stands where
// the rules say that one is; and adds the content, where that is kept. Where rules
// name secrets that may be among values too many to be looked at, nothing is kept that may repeat them.
func (c *encoder) redact(rec *schema.Record, e *Entry, b *body) {
	var removed *redact.Echoes
	if c.o.Content || !c.o.Rules.Empty() {
		doc, cut := b.document(e)
		if removed = c.o.Rules.Clean(doc); len(cut) > 0 && !c.o.Rules.Empty() {
			removed, doc, cut = redact.Everything(), nil, []string{"content"}
		}
		if c.o.Content {
			rec.Content, rec.Cut = bounded(doc)
			rec.Cut = append(cut, rec.Cut...)
		}
	}
	safe := func(s string) string {
		if s == "" {
			return ""
		}
		return redact.Text(removed.Without(s))
	}
	rec.Reason = safe(rec.Reason)
	if said(rec.ExecutedHooks) {
		rec.ExecutedHooks = slices.Clone(rec.ExecutedHooks) // the feed has the same
		for i := range rec.ExecutedHooks {
			x := &rec.ExecutedHooks[i]
			x.Reason, x.Error = safe(x.Reason), safe(x.Error)
		}
	}
	if len(rec.HookErrors) > 0 {
		rec.HookErrors = slices.Clone(rec.HookErrors)
		for i, s := range rec.HookErrors {
			rec.HookErrors[i] = safe(s)
		}
	}
}

// said reports whether some hook said anything in words.
func said(hooks []schema.ExecutedHook) bool {
	return slices.ContainsFunc(hooks, func(x schema.ExecutedHook) bool { return x.Reason != "" || x.Error != "" })
}

// maxContent bounds the content of one record.
const maxContent = 64 << 10

// bounded is a document's JSON, without the largest of its members while it is too
// large; cut names those.
func bounded(doc map[string]any) (content jsontext.Value, cut []string) {
	for len(doc) > 0 {
		data, err := schema.Marshal(doc)
		if err == nil && len(data) <= maxContent {
			return data, cut
		}
		name := largest(doc)
		delete(doc, name)
		cut = append(cut, name)
	}
	return nil, cut
}

// largest is the name of the member that takes the most.
func largest(doc map[string]any) (name string) {
	most := -1
	for member, v := range doc {
		data, err := schema.Marshal(v)
		n := len(data)
		if err != nil {
			n = maxContent + 1
		}
		if n > most || n == most && member < name {
			name, most = member, n
		}
	}
	return name
}
