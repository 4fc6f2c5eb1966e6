// The least that an extender in Go does: net/http and encoding/json, every node passes and gets the score 0.
//
// Usage: go_extender ADDRESS
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type args struct {
	Pod       json.RawMessage
	NodeNames *[]string
}

type filterResult struct {
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

type hostPriority struct {
	Host  string
	Score int64
}

func filter(asked args) any {
	return filterResult{NodeNames: asked.NodeNames, FailedNodes: map[string]string{}}
}

func prioritize(asked args) any {
	list := make([]hostPriority, 0, len(*asked.NodeNames))
	for _, name := range *asked.NodeNames {
		list = append(list, hostPriority{Host: name})
	}
	return list
}

func handler(answer func(args) any) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		var asked args
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.NodeNames == nil {
			http.Error(out, "not ExtenderArgs with NodeNames", http.StatusBadRequest)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(out).Encode(answer(asked)); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	http.HandleFunc("POST /scheduler/filter", handler(filter))
	http.HandleFunc("POST /scheduler/prioritize", handler(prioritize))
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
