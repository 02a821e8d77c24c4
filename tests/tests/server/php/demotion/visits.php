<?php
// Counts its visits as long as its process keeps them: in worker mode all of them, in classic mode only one.
final class Kept
{
    public static int $visits = 0;
}
$respond = function () {
    header('Content-Type: text/html; charset=utf-8');
    echo '<p>visits: ', ++Kept::$visits, '</p>';
};
if (Howdah\mode() === 'worker') {
    while (frankenphp_handle_request($respond)) {
    }
} else {
    $respond();
}
