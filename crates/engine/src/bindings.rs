//! The WIT world in Rust.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "workflow",
    imports: { default: trappable },
    exports: { default: async | trappable },
});
