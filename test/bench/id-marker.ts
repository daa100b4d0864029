/** In place of this each request gets an id of its own, of the same length. */
export const idMarker = "ID-OF-THE-CALL";
