package schema

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// AppendRecord appends the JSON of r to b, as [Marshal] writes it. It avoids reflection and
// allocation for most records, because there is one for each verdict.
func AppendRecord(b []byte, r *Record) ([]byte, error) {
	w := plainWriter{b: b}
	if r.write(&w); !w.fancy {
		return w.b, nil
	}
	data, err := json.Marshal(r, options)
	return append(b, data...), err
}

// write appends a record of a verdict without content.
func (r *Record) write(w *plainWriter) {
	if w.fancy = r.Freeze != nil || r.Expired != nil || r.Content != nil || r.Cut != nil; w.fancy {
		return
	}
	w.time(`{"time":"`, r.Time)
	w.some(`,"event_id":"`, r.EventID)
	w.some(`,"trace_id":"`, r.TraceID)
	w.number(`,"attempt":`, int64(r.Attempt))
	w.some(`,"event":"`, string(r.Event))
	w.some(`,"agent":"`, r.Agent)
	w.some(`,"session":"`, r.Session)
	w.some(`,"runtime":"`, r.Runtime)
	w.some(`,"host":"`, r.Host)
	w.some(`,"broker":"`, r.Broker)
	w.some(`,"tool":"`, r.Tool)
	w.some(`,"tool_kind":"`, r.ToolKind)
	w.some(`,"input_hash":"`, r.InputHash)
	w.some(`,"decision":"`, string(r.Decision))
	w.some(`,"reason":"`, r.Reason)
	w.mark(`,"rewritten":true`, r.Rewritten)
	writeList(w, `,"injections":[`, r.Injections, (*InjectionRecord).write)
	writeList(w, `,"executed_hooks":[`, r.ExecutedHooks, (*ExecutedHook).write)
	writeList(w, `,"hook_errors":[`, r.HookErrors, func(s *string, w *plainWriter) { w.text(`"`, *s) })
	w.version(r.ConfigVersion)
	w.took(`,"took":"`, r.Took)
	r.writeMarks(w)
	w.raw("}")
}

// writeMarks appends members that few records have.
func (r *Record) writeMarks(w *plainWriter) {
	w.some(`,"failed":"`, string(r.Failed))
	w.mark(`,"shed":true`, r.Shed)
	w.mark(`,"malformed":true`, r.Malformed)
	w.some(`,"limited":"`, r.Limited)
	w.number(`,"more":`, int64(r.More))
	w.mark(`,"aside":true`, r.Aside)
	w.some(`,"would":"`, string(r.Would))
	w.mark(`,"unjudged":true`, r.Unjudged)
	w.number(`,"lost":`, int64(r.Lost))
	w.mark(`,"frozen":true`, r.Frozen)
}

func (in *InjectionRecord) write(w *plainWriter) {
	begin := `{`
	for _, m := range [...]struct{ name, text string }{{`"hook":"`, in.Hook}, {`"source":"`, in.Source}} {
		if m.text != "" {
			w.raw(begin)
			w.text(m.name, m.text)
			begin = `,`
		}
	}
	w.raw(begin)
	w.text(`"strategy":"`, string(in.Strategy))
	w.raw(`,"length":`)
	w.b = strconv.AppendInt(w.b, int64(in.Length), 10)
	if in.Sequence != 0 {
		w.raw(`,"sequence":`)
		w.b = strconv.AppendUint(w.b, in.Sequence, 10)
	}
	w.raw("}")
}

// time is text for a time in UTC, as records have it. Other zones, and years that the
// codec rejects, are left to it.
func (w *plainWriter) time(begin string, t time.Time) {
	if year := t.Year(); t.Location() != time.UTC || year < 0 || year > 9999 {
		w.fancy = true
		return
	}
	w.raw(begin)
	w.b = t.AppendFormat(w.b, time.RFC3339Nano)
	w.raw(`"`)
}

// number appends a member that is omitted if 0.
func (w *plainWriter) number(begin string, n int64) {
	if n != 0 {
		w.raw(begin)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

// version appends a configuration's version, if there is one.
func (w *plainWriter) version(v uint64) {
	if v != 0 {
		w.raw(`,"config_version":`)
		w.b = strconv.AppendUint(w.b, v, 10)
	}
}

// mark appends a member that is omitted if false.
func (w *plainWriter) mark(member string, holds bool) {
	if holds {
		w.raw(member)
	}
}
