<?php
function sql($s) {
    return $GLOBALS['db']->query($s);
}
function value($s) {
    return $GLOBALS['db']->query($s)->fetch_row()[0];
}
