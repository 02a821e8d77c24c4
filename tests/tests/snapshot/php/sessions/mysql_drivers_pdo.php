<?php
function sql($s) {
    return $GLOBALS['db']->exec($s);
}
function value($s) {
    return $GLOBALS['db']->query($s)->fetchColumn();
}
