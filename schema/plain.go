package schema

import (
	"slices"
	"strconv"
)

// Most replies and verdicts have only hooks and decisions. They are encoded here, and
// decoded in plainread.go, without reflection, which takes most of a call's time for
// JSON. There is still one dialect: this code writes the same bytes as the codec and
// reads the same values. It leaves everything else to the codec. Tests compare both.

// A plainValue can write and read itself if it is plain.
type plainValue interface {
	// appendPlain appends the JSON of the value to b, and reports whether it is plain.
	appendPlain(b []byte) ([]byte, bool)
	// readPlain reads JSON in the form of appendPlain, and reports whether it has that
	// form. Otherwise the value is unchanged, except for unused memory of its lists.
	readPlain(data []byte) bool
}

// plainOf returns v as a plain value; nil: it cannot be one. Types are listed, because a
// type that embeds a verdict has its methods and more members.
func plainOf(v any) plainValue {
	switch v := v.(type) {
	case *BatchReply:
		if v != nil {
			return v
		}
	case *Verdict:
		if v != nil {
			return v
		}
	}
	return nil
}

// plainWriter appends members, until one is not plain.
type plainWriter struct {
	b     []byte
	fancy bool
}

// plainWriterTo appends to b, and reserves memory for that many short outcomes.
func plainWriterTo(b []byte, outcomes int) *plainWriter {
	return &plainWriter{b: slices.Grow(b, 128+160*outcomes)}
}

// raw appends JSON.
func (w *plainWriter) raw(s string) { w.b = append(w.b, s...) }

// text appends the beginning of a member and then s as a string.
func (w *plainWriter) text(begin, s string) {
	if !plainText(s) {
		w.fancy = true
		return
	}
	w.b = append(append(w.b, begin...), s...)
	w.b = append(w.b, '"')
}

// some is text for a member that is omitted if empty.
func (w *plainWriter) some(begin, s string) {
	if s != "" {
		w.text(begin, s)
	}
}

func (w *plainWriter) took(begin string, d Duration) {
	if d != 0 {
		w.b = append(append(w.b, begin...), d.Std().String()...)
		w.b = append(w.b, '"')
	}
}

// writeList appends the beginning of a member and then a list, if it is not empty.
func writeList[T any](w *plainWriter, begin string, all []T, write func(*T, *plainWriter)) {
	if all == nil {
		return
	}
	w.raw(begin)
	for i := range all {
		if i > 0 {
			w.raw(",")
		}
		write(&all[i], w)
	}
	w.raw("]")
}

// plainText reports whether s needs no escapes: visible ASCII without quotes and
// backslashes.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (r *BatchReply) appendPlain(b []byte) ([]byte, bool) {
	w := plainWriterTo(b, len(r.Outcomes))
	w.text(`{"worker":"`, r.Worker)
	w.some(`,"status":"`, string(r.Status))
	w.some(`,"error":"`, r.Error)
	writeList(w, `,"outcomes":[`, r.Outcomes, (*Outcome).write)
	w.raw("}")
	return w.b, !w.fancy
}

func (o *Outcome) write(w *plainWriter) {
	w.raw(`{"hook":`)
	w.b = strconv.AppendInt(w.b, int64(o.Hook), 10)
	w.some(`,"kind":"`, string(o.Kind))
	w.some(`,"error":"`, o.Error)
	o.Result.write(w)
	w.took(`,"took":"`, o.Took)
	w.some(`,"worker":"`, o.Worker)
	w.raw("}")
}

// write appends a result that has only a decision and a reason.
func (r *Result) write(w *plainWriter) {
	switch {
	case r.UpdatedInput != nil || r.UpdatedOutput != nil || r.Value != nil || r.Effects != nil || r.Injections != nil || r.HookErrors != nil,
		r.Decision == None && r.Reason != "":
		w.fancy = true
	case r.Decision != None:
		w.text(`,"result":{"decision":"`, string(r.Decision))
		w.some(`,"reason":"`, r.Reason)
		w.raw("}")
	}
}

func (v *Verdict) appendPlain(b []byte) ([]byte, bool) {
	if v.UpdatedInput != nil || v.UpdatedOutput != nil || v.Value != nil || v.Effects != nil ||
		v.Injections != nil || v.HookErrors != nil || v.Restart != nil || v.Terminate != nil || v.Workspaces != nil || v.Acked != nil {
		return b, false
	}
	w := plainWriterTo(b, len(v.ExecutedHooks))
	w.text(`{"decision":"`, string(v.Decision))
	w.some(`,"reason":"`, v.Reason)
	w.mark(`,"auto_approve":true`, v.AutoApprove)
	writeList(w, `,"executed_hooks":[`, v.ExecutedHooks, (*ExecutedHook).write)
	w.version(v.ConfigVersion)
	w.mark(`,"frozen":true`, v.Frozen)
	if v.FreezeVersion != 0 {
		w.raw(`,"freeze_version":`)
		w.b = strconv.AppendUint(w.b, v.FreezeVersion, 10)
	}
	w.some(`,"fabric":"`, v.Fabric)
	w.raw("}")
	return w.b, !w.fancy
}

func (x *ExecutedHook) write(w *plainWriter) {
	w.text(`{"hook":"`, x.Hook)
	w.some(`,"decision":"`, string(x.Decision))
	w.some(`,"reason":"`, x.Reason)
	w.text(`,"outcome":"`, string(x.Outcome))
	w.took(`,"duration":"`, x.Duration)
	w.some(`,"worker":"`, x.Worker)
	w.some(`,"mode":"`, string(x.Mode))
	w.some(`,"error":"`, x.Error)
	w.raw("}")
}
