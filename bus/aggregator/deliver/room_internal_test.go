package deliver

import (
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTheLengthOfATextAsJSONIsNotUnderrated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		data, err := schema.Marshal(text)
		if err != nil {
			t.Skip("it is never sent")
		}
		if got, want := asJSON(text), int64(len(data)-2); got < want {
			t.Errorf("%d, and it is %d: %s", got, want, data)
		}
		most := rapid.IntRange(0, 100).Draw(t, "most")
		if part := upTo(text, most); text[:len(part)] != part || asJSON(part) > int64(most) {
			t.Errorf("%q is what is left of %q", part, text)
		}
	})
}

// TestWhatIsHandedOverFitsASmallServer checks that a delivery through a server with a small limit
// fits that limit.
func TestWhatIsHandedOverFitsASmallServer(t *testing.T) {
	const most = 1 << 20
	s := &Deliverer{opt: Options{MaxVerdict: func() int { return most }, Logger: slog.New(slog.DiscardHandler)}}
	d := &delivery{Deliverer: s, room: s.room(0)}
	all := []rendering{{Handout: schema.Handout{Injections: []schema.Injection{{Content: strings.Repeat("\x1b", 1<<20)}, {Content: "short"}}}}}
	d.shorten(all)
	v := &schema.Verdict{Injections: all[0].Injections}
	if data, err := schema.Marshal(v); err != nil || len(data) > most || len(v.Injections) != 2 || v.Injections[1].Content != "short" {
		t.Errorf("it has %d bytes, %v", len(data), err)
	}
	if d.room.content < minContent || d.room.content > d.room.whole || d.room.whole >= most {
		t.Errorf("the room is %+v", d.room)
	}
}
