//! What the committed component can reach.

use wasmtime::component::Component;

/// Nothing but the workflow's own interfaces: no WASI, so no clock, no randomness, no files, by any path.
#[test]
fn the_component_imports_only_fanfold_workflow() {
    let mut config = wasmtime::Config::new();
    fanfold::configure(&mut config);
    let engine = wasmtime::Engine::new(&config).expect("an engine");
    let component = Component::new(&engine, fanfold::COMPONENT).expect("the component compiles");
    let kind = component.component_type();
    let imports: Vec<&str> = kind.imports(&engine).map(|(name, _)| name).collect();
    assert_eq!(
        imports,
        ["types", "agent", "workflows", "budget", "timers", "progress"]
            .map(|name| format!("fanfold:workflow/{name}@0.1.0"))
    );
    let exports: Vec<&str> = kind.exports(&engine).map(|(name, _)| name).collect();
    assert_eq!(exports, ["compile", "run"]);
}
