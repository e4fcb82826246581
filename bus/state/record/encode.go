package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// hashPrefix names the algorithm, as in digests of objects.
const hashPrefix = "sha256-"

// encoder makes lines from entries. It is for one goroutine.
type encoder struct {
	o       *Options
	scratch []byte        // for canonical forms
	rec     schema.Record // the current record
	out     []byte        // its line
}

func newEncoder(o *Options) *encoder {
	o.Rules = cmp.Or(o.Rules, new(redact.Rules))
	return &encoder{o: o}
}

// spare bounds the buffers that are reused, in bytes.
const spare = 1 << 20

// line returns the line of an entry, with its line feed; ahead is how far the server's clock is ahead. The line is valid
// until the next call.
func (c *encoder) line(e *Entry, ahead time.Duration) ([]byte, error) {
	rec := &c.rec
	*rec = *e.Record
	defer func() { c.rec = schema.Record{} }() // release its contents
	rec.Broker = c.o.Broker
	if !rec.Unjudged { // these have the time of a shim
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
	data, err := schema.AppendJSON(c.out[:0], rec)
	if err == nil && len(data) > maxRecord {
		trim(rec)
		data, err = schema.AppendJSON(data[:0], rec)
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

// trim shortens the unbounded parts.
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

// hash returns the SHA-256 of the canonical form of a value; empty: there is no value, or it is invalid. canonical: the value
// is in that form.
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

// redact removes detected secrets and the values that the rules name, and adds the content if it is recorded. If the rules name
// values in members with too many values, it removes everything that may repeat them.
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
	if hasTexts(rec.ExecutedHooks) {
		rec.ExecutedHooks = slices.Clone(rec.ExecutedHooks) // the feed shares the original
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

// hasTexts reports whether a hook has a reason or an error.
func hasTexts(hooks []schema.ExecutedHook) bool {
	return slices.ContainsFunc(hooks, func(x schema.ExecutedHook) bool { return x.Reason != "" || x.Error != "" })
}

// maxContent bounds the content of one record, in bytes.
const maxContent = 64 << 10

// bounded returns a document's JSON. It removes the largest members until it is small enough; cut has their names.
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

// largest returns the name of the largest member.
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
