package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/hookfabric/hookfabric/bus/agent/llm"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I call a model?
func Example_howDoICallAModel() {
	// A stand-in for the vendor's API.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"A shared line."},"finish_reason":"stop"}]}`)
	}))
	defer api.Close()

	model, err := llm.New(llm.Options{
		Format: render.OpenAI, Model: "gpt-5", URL: api.URL, // without URL: the vendor's
		Key: func(context.Context) (string, error) { return "secret", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := model.Call(context.Background(), []schema.Message{{Role: schema.RoleUser, Content: "What is a bus?"}}, nil)
	fmt.Println(message.Content, err)
	// Output:
	// A shared line. <nil>
}
