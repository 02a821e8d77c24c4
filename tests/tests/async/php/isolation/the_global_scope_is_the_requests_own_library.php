<?php
function set_it($v) {
    global $marked;
    $marked = $v;
    $GLOBALS['other'] = [$v];
}
function get_it() {
    global $marked;
    return $marked . $GLOBALS['other'][0] . (isset($GLOBALS['later']) ? 'foreign' : '');
}
