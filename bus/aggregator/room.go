package aggregator

import (
	"sort"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxHanded is about how much content one verdict brings of the queue.
	maxHanded = 4 << 20
	// minHanded is how much a verdict must be able to bring for something to be handed
	// over with it: what cannot be sent is handed over for nothing, and comes again.
	minHanded = queue.MaxContent
)

// A room is what a verdict can take of the queue: content as it waits, and the
// whole of what is made of that.
type room struct{ content, whole int }

// room is that of a verdict which is so large already.
func (a *Aggregator) room(filled int) room {
	most := a.mostSent()
	whole := most - most/16 - filled
	return room{content: min(maxHanded, whole/5*3), whole: whole}
}

// half is for what is said twice.
func (r room) half() room { return room{content: min(r.content, r.whole/10*3), whole: r.whole / 2} }

// filled is about how large a verdict is.
func filled(v *schema.Verdict) (n int) {
	n = len(v.UpdatedInput) + len(v.UpdatedOutput) + len(v.Value)
	for _, e := range v.Effects {
		n += len(e)
	}
	for i := range v.Injections {
		n += int(asJSON(v.Injections[i].Content))
	}
	return n
}

// readings are all texts that the stages made for an agent to read.
func readings(all []handed) (some []*string) {
	for i := range all {
		h := &all[i]
		for j := range h.Injections {
			some = append(some, &h.Injections[j].Content)
		}
		if h.Restart != nil {
			some = append(some, &h.Restart.Content)
		}
	}
	return some
}

// length is how long they are as JSON.
func length(all []handed) (n int) {
	for _, text := range readings(all) {
		n += int(asJSON(*text))
	}
	return n
}

// tooLong stands at the end of a text that was shortened.
const tooLong = "… [cut: the text is too long to send]"

// shorten cuts the longest texts as far as that must be. What became longer than
// can be sent by how it is said would come again for ever, and hold back what is
// behind it.
func (d *delivery) shorten(all []handed) {
	some, sizes := readings(all), []int{}
	for _, text := range some {
		sizes = append(sizes, int(asJSON(*text)))
	}
	beyond := d.room.whole + 2
	most := sort.Search(beyond, func(most int) bool {
		n := 0
		for _, size := range sizes {
			n += min(size, most)
		}
		return n > d.room.whole
	})
	if most == beyond {
		return // it fits
	}
	for i, text := range some {
		if sizes[i] >= most {
			*text = upTo(*text, most-1-len(tooLong)) + tooLong
		}
	}
	bus.InTrace(d.agg.opt.Logger, d.to.Trace).Warn("a message for an agent was cut because it is too long to send", "agent", d.to.Agent, "event_id", d.to.ID)
}

// upTo is the part from the start of a text that is at most so long as JSON.
func upTo(text string, most int) string {
	for at, r := range text {
		if most -= inJSON(r); most < 0 {
			return text[:at]
		}
	}
	return text
}

// asJSON is how long a text is as JSON, in which control characters take six
// times their room: a verdict that is too large to send would come again for ever.
func asJSON(text string) (n int64) {
	for _, r := range text {
		n += int64(inJSON(r))
	}
	return n
}

// inJSON is how long a character is in JSON.
func inJSON(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ':
		return 6
	case r < utf8.RuneSelf:
		return 1
	}
	return utf8.RuneLen(r) // what is no character becomes U+FFFD
}
