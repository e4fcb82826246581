package schema_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// How do I print an agent's text safely on a terminal?
func Example_howDoIPrintUntrustedText() {
	fmt.Println(schema.Visible("done\x1b[2J\nfake line\u202e"))
	// Output:
	// done\x1b[2J\nfake line\u202e
}
