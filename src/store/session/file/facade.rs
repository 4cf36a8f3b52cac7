//! temp
pub struct ForkOptions;
pub struct ListOptions;
pub struct LoadOptions;
