package schema

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxPlain limits what is read here, because the values keep the whole text in memory.
const maxPlain = 16 << 10

// plainReader reads members in order, until one is not plain.
type plainReader struct {
	rest  string
	fancy bool
}

func readerOf(data []byte) *plainReader {
	if len(data) > maxPlain {
		return &plainReader{fancy: true}
	}
	return &plainReader{rest: string(data)}
}

// ended reports whether everything was read, and plain.
func (r *plainReader) ended() bool { return !r.fancy && r.rest == "" }

// maybe reads s if it comes next.
func (r *plainReader) maybe(s string) bool {
	rest, ok := strings.CutPrefix(r.rest, s)
	if ok {
		r.rest = rest
	}
	return ok
}

// raw reads s, which must come next.
func (r *plainReader) raw(s string) { r.fancy = !r.maybe(s) || r.fancy }

// text reads the beginning of a member and then a string.
func (r *plainReader) text(begin string) (s string) {
	r.raw(begin)
	return r.quoted()
}

// some is text for a member that may be omitted.
func (r *plainReader) some(begin string, into *string) {
	if r.maybe(begin) {
		*into = r.quoted()
	}
}

// quoted reads up to the quote that ends a string.
func (r *plainReader) quoted() string {
	end := strings.IndexByte(r.rest, '"')
	if end < 0 {
		r.fancy = true
		return ""
	}
	s := r.rest[:end]
	r.rest = r.rest[end+1:]
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == '\\':
			r.fancy = true
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.fancy = r.fancy || !ascii && !utf8.ValidString(s)
	return s
}

func (r *plainReader) took(begin string, into *Duration) {
	if !r.maybe(begin) {
		return
	}
	d, err := time.ParseDuration(r.quoted())
	*into, r.fancy = Duration(d), r.fancy || err != nil
}

// number reads up to eighteen digits.
func (r *plainReader) number() (n uint64) {
	digits := 0
	for digits < len(r.rest) && r.rest[digits] >= '0' && r.rest[digits] <= '9' {
		n = 10*n + uint64(r.rest[digits]-'0')
		digits++
	}
	r.fancy = r.fancy || digits == 0 || digits > 18 || digits > 1 && r.rest[0] == '0'
	r.rest = r.rest[digits:]
	return n
}

// readList reads the rest of a list that is not empty, into room if it is large enough.
func readList[T any](r *plainReader, room []T, each func(*T, *plainReader)) []T {
	var zero T
	all := slices.Grow(room[:0], 1+strings.Count(r.rest, `},{`))
	for !r.fancy {
		all = append(all, zero)
		each(&all[len(all)-1], r)
		if !r.maybe(",") {
			r.raw("]")
			break
		}
	}
	return all
}

func (b *BatchReply) readPlain(data []byte) bool {
	r, next := readerOf(data), *b
	next.Worker = r.text(`{"worker":"`)
	r.some(`,"status":"`, (*string)(&next.Status))
	r.some(`,"error":"`, &next.Error)
	if r.maybe(`,"outcomes":[`) {
		next.Outcomes = readList(r, next.Outcomes, (*Outcome).read)
	}
	r.raw("}")
	if r.ended() {
		*b = next
	}
	return r.ended()
}

func (o *Outcome) read(r *plainReader) {
	r.raw(`{"hook":`)
	hook := r.number()
	o.Hook, r.fancy = int(hook), r.fancy || hook > math.MaxInt32
	r.some(`,"kind":"`, (*string)(&o.Kind))
	r.some(`,"error":"`, &o.Error)
	if r.maybe(`,"result":{"decision":"`) {
		o.Result.Decision = Decision(r.quoted())
		r.some(`,"reason":"`, &o.Result.Reason)
		r.raw("}")
	}
	r.took(`,"took":"`, &o.Took)
	r.some(`,"worker":"`, &o.Worker)
	r.raw("}")
}

func (v *Verdict) readPlain(data []byte) bool {
	r, next := readerOf(data), *v
	next.Decision = Decision(r.text(`{"decision":"`))
	r.some(`,"reason":"`, &next.Reason)
	if r.maybe(`,"auto_approve":true`) {
		next.AutoApprove = true
	}
	if r.maybe(`,"executed_hooks":[`) {
		next.ExecutedHooks = readList(r, next.ExecutedHooks, (*ExecutedHook).read)
	}
	if r.maybe(`,"config_version":`) {
		next.ConfigVersion = r.number()
	}
	if r.maybe(`,"frozen":true`) {
		next.Frozen = true
	}
	if r.maybe(`,"freeze_version":`) {
		next.FreezeVersion = r.number()
	}
	r.some(`,"fabric":"`, &next.Fabric)
	r.raw("}")
	if r.ended() {
		*v = next
	}
	return r.ended()
}

func (x *ExecutedHook) read(r *plainReader) {
	x.Hook = r.text(`{"hook":"`)
	r.some(`,"decision":"`, (*string)(&x.Decision))
	r.some(`,"reason":"`, &x.Reason)
	x.Outcome = OutcomeKind(r.text(`,"outcome":"`))
	r.took(`,"duration":"`, &x.Duration)
	r.some(`,"worker":"`, &x.Worker)
	r.some(`,"mode":"`, (*string)(&x.Mode))
	r.some(`,"error":"`, &x.Error)
	r.raw("}")
}
