import { pngSize } from './png-size.js';
import { allBlocks } from './walk.js';

const MOST_IMAGES = 100;
const MOST_BASE64 = 5 * 1024 * 1024;
const LONGEST_SIDE = 8000;
/** With more than this many images in a request, the smaller limit for their sides holds. */
const MANY_IMAGES = 20;
const LONGEST_SIDE_OF_MANY = 2000;
const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** Rules about images, also inside tool results. */
export const imageRules = {
  'image-source': imageSource,
  'image-count': imageCount,
  'image-size': imageSize,
  'image-dimensions': imageDimensions,
};

function images(request) {
  return [...allBlocks(request)].filter(({ block }) => block.type === 'image');
}

function imageSource(request) {
  for (const { block, path } of images(request)) {
    const { type, media_type: mediaType, data } = block.source ?? {};
    if (type === 'url' || type === 'file') continue;
    if (type !== 'base64') return `${path}.source.type must be "base64", "url" or "file"`;
    if (!MEDIA_TYPES.includes(mediaType)) {
      return `${path}.source.media_type must be one of ${MEDIA_TYPES.join(', ')}`;
    }
    if (typeof data !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) {
      return `${path}.source.data must be base64`;
    }
  }
  return null;
}

function imageCount(request) {
  const { length } = images(request);
  return length <= MOST_IMAGES ? null : `${length} images, at most ${MOST_IMAGES} allowed`;
}

function imageSize(request) {
  for (const { block, path } of images(request)) {
    const length = block.source.data?.length ?? 0;
    if (length > MOST_BASE64) {
      return `${path}.source.data: ${length} bytes of base64, at most ${MOST_BASE64} allowed`;
    }
  }
  return null;
}

function imageDimensions(request) {
  const found = images(request);
  const limit = found.length > MANY_IMAGES ? LONGEST_SIDE_OF_MANY : LONGEST_SIDE;
  for (const { block, path } of found) {
    const size = pngSize(block.source.data);
    if (size && Math.max(size.width, size.height) > limit) {
      return `${path}: ${size.width}x${size.height} px, at most ${limit} px a side with ${found.length} images`;
    }
  }
  return null;
}
