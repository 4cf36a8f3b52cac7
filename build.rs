//! Exports the Node-API symbols of the addon.

fn main() {
    napi_build::setup();
}
