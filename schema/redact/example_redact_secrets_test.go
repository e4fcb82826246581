package redact_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema/redact"
)

// How do I remove secrets before I log a tool's input?
func Example_howDoIRedactSecrets() {
	fmt.Println(redact.Text("curl -H 'Authorization: Bearer abcdefghijklmnop1234' https://api.example"))
	fmt.Println(string(redact.Value(jsontext.Value(`{"user":"ada","password":"correct horse"}`))))
	// Output:
	// curl -H 'Authorization: Bearer [removed]' https://api.example
	// {"password":"[removed]","user":"ada"}
}
