//! Reading response bodies that may be too long or never end.

use bytes::BytesMut;

/// Reads at most `limit` bytes of a body; the flag says whether more followed.
pub async fn read_bounded(
    response: &mut reqwest::Response,
    limit: usize,
) -> Result<(BytesMut, bool), reqwest::Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}
