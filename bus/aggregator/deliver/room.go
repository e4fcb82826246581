package deliver

import (
	"sort"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxContent is about how much content one verdict brings of the queue.
	maxContent = 4 << 20
	// minContent is the smallest room in a verdict for a delivery. Items that do not fit would be
	// claimed in vain, and come again.
	minContent = queue.MaxContent
)

// A room is how much a verdict can hold: content in the queue's form, and the whole in rendered
// form.
type room struct{ content, whole int }

// room returns the room in a verdict that has filled bytes already.
func (s *Deliverer) room(filled int) room {
	most := s.opt.MaxVerdict()
	whole := most - most/16 - filled
	return room{content: min(maxContent, whole/5*3), whole: whole}
}

// half returns half of the room, for content that the verdict carries twice.
func (r room) half() room { return room{content: min(r.content, r.whole/10*3), whole: r.whole / 2} }

// filled returns about how large a verdict is, in bytes.
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

// readings returns all texts that the stages rendered for the agent.
func readings(all []rendering) (some []*string) {
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

// length returns the total length of the texts as JSON.
func length(all []rendering) (n int) {
	for _, text := range readings(all) {
		n += int(asJSON(*text))
	}
	return n
}

// tooLong is the end of a text that was cut.
const tooLong = "… [cut: the text is too long to send]"

// shorten cuts the longest texts until the whole fits. A text that its rendering made too long to
// send would be delivered again without end, and block the items behind it.
func (d *delivery) shorten(all []rendering) {
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
		return // everything fits
	}
	for i, text := range some {
		if sizes[i] >= most {
			*text = upTo(*text, most-1-len(tooLong)) + tooLong
		}
	}
	bus.InTrace(d.opt.Logger, d.to.Trace).Warn("a message for an agent was cut because it is too long to send", "agent", d.to.Agent, "event_id", d.to.ID)
}

// upTo returns the longest start of a text that takes at most most bytes in JSON.
func upTo(text string, most int) string {
	for at, r := range text {
		if most -= inJSON(r); most < 0 {
			return text[:at]
		}
	}
	return text
}

// asJSON returns the length of a text as JSON, where a control character takes six bytes. A verdict
// too large to send would be delivered again without end.
func asJSON(text string) (n int64) {
	for _, r := range text {
		n += int64(inJSON(r))
	}
	return n
}

// inJSON returns the length of a character in JSON.
func inJSON(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ':
		return 6
	case r < utf8.RuneSelf:
		return 1
	}
	return utf8.RuneLen(r) // an invalid character becomes U+FFFD
}
