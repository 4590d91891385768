// RUN: magweld-opt --split-input-file --verify-diagnostics --select-winograd %s

// expected-error@+1 {{expected a device, got "cpu"}}
func.func @no_device() attributes {tile_graph.device = "cpu"} {
  return
}

// -----

#device = #tile_graph.device<"toy", [
  #tile_graph.level<"dram", 0, 0, 0.0, 64, 1, "explicit", 12.0, 0>,
  #tile_graph.level<"register", 1, 2048, 800.0, 32, 2, "explicit", 0.0, 0>
], 2, 1, 1, 512, 200.0, [], []>

// expected-error@+1 {{expected bandwidth of level 'dram' to be positive and finite}}
func.func @no_bandwidth() attributes {tile_graph.device = #device} {
  return
}
