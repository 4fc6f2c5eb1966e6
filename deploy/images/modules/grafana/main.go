// Holds dashboards to the schema that Grafana publishes: `grafana-dashboards FILE...` prints what is wrong in each.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	wrong := false
	for _, path := range os.Args[1:] {
		if err := held(runtime, path); err != nil {
			fmt.Printf("%s: %s\n", path, err)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// held reads one file: a field that the schema lacks, one of another type and one that is missing are errors.
func held(runtime *cog.Runtime, path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	read := dashboard.Dashboard{}
	return errors.Join(said(read.UnmarshalJSONStrict(raw)), said(read.Validate()), drawn(runtime, raw))
}

// said is the error, unless it is one of those that the generated types return for nothing.
func said(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

// drawn finds panels of a type whose options nobody has read: the schema of a dashboard takes any.
func drawn(runtime *cog.Runtime, raw []byte) error {
	var read struct{ Panels []struct{ Type string } }
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	for number, panel := range read.Panels {
		if _, known := runtime.ConfigForPanelcfgVariant(panel.Type); !known {
			return fmt.Errorf("panels[%d].type: %q is none of Grafana's that this program knows", number, panel.Type)
		}
	}
	return nil
}
