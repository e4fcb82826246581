package bus_test

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus"
)

func TestInboxNameIdentifiesTheOwner(t *testing.T) {
	for subject, want := range map[string]string{
		bus.InboxOf("UKEY") + ".abc.1": bus.InboxOf("UKEY"), bus.InboxOf("UKEY") + ".other": bus.InboxOf("UKEY"),
		"_INBOX.abc.1": "_INBOX.abc", "_INBOX.abc": "_INBOX.abc", "_INBOX_.x.1": "_INBOX_.x", "_R_.abc.x": "_R_.abc", "": ".",
	} {
		if got := bus.InboxName(subject); got != want {
			t.Errorf("the name of %s is %s; want %s", subject, got, want)
		}
	}
}
