<?php
/* Plugin Name: Marker */ add_action('init', function () {
    global $marker, $wpdb;
    register_setting('general', 'marker_text', ['show_in_rest' => true, 'type' => 'string']);
    $marker = get_option('marker_text', 'unset') . '|' . $wpdb->get_var("SELECT post_title FROM $wpdb->posts WHERE ID = 1") . '|' . get_transient('marker_cached');
    register_post_type('thing', ['public' => true, 'label' => 'Things', 'has_archive' => true, 'show_in_rest' => true]);
});
add_action('wp_footer', function () {
    global $marker, $pagenow, $is_chrome;
    echo "<!-- marker: $marker $pagenow ", var_export($is_chrome, true), ' ', is_user_logged_in() ? 'user' : 'stranger', WP_START_TIMESTAMP < $_SERVER['REQUEST_TIME_FLOAT'] ? ' began before' : '', ' -->';
});
register_activation_hook(__FILE__, function () {
    set_transient('marker_cached', 'a transient');
});
register_deactivation_hook(__FILE__, function () {
    delete_transient('marker_cached');
});
